package topics

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// policyEdit is a change of a topic's policy before it is made.
type policyEdit struct {
	topic   *ddqv1.Topic // as it is now
	saw     string       // the policy that the visitor saw
	wants   string       // as it was written
	refused string       // why it was not made; empty: it was not tried
	patch   *ddqv1.TopicPolicy
	all     []frame.Difference
}

// readPolicy reads a policy as people write it. The number of shards is left out: a reshard changes it.
func readPolicy(text string) (*ddqv1.TopicPolicy, error) {
	p := new(ddqv1.TopicPolicy)
	if err := protojson.Unmarshal([]byte(text), p); err != nil {
		return nil, status.Error(codes.InvalidArgument, "nothing was changed: the policy cannot be read: "+err.Error())
	}
	p.Shards = nil
	return p, nil
}

// policyText is a policy as people read and write it.
func policyText(p *ddqv1.TopicPolicy) string {
	return protojson.MarshalOptions{Multiline: true, Indent: "  ", UseProtoNames: true}.Format(p)
}

// policy is each value of the topic's policy, and where it comes from.
func (p *topicPage) policy() g.Node {
	is, byDefault := p.GetTopic().GetPolicy(), p.GetDefaultPolicy()
	var rows g.Group
	fields := is.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		value, would := fieldText(is, f), fieldText(byDefault, f)
		from := h.Td(g.Text("default"))
		if value != would {
			from = h.Td(h.Strong(g.Text("set")), g.Text(" "), frame.Quiet("default: "+cmp.Or(would, "none")))
		}
		rows = append(rows, h.Tr(frame.RowHead(g.Text(f.TextName())), h.Td(h.Code(g.Text(cmp.Or(frame.Cut(value), "none")))), from))
	}
	return frame.Table("Policy", "", frame.Heads("field", "value", "from"), rows)
}

// reviewPolicy shows what a change of the policy would do.
func (s *section) reviewPolicy(ctx context.Context, form url.Values) (frame.View, error) {
	return s.review(ctx, form, "")
}

// review compares what a visitor wants with what they saw, and with what is there now.
func (s *section) review(ctx context.Context, form url.Values, refused string) (frame.View, error) {
	name, err := frame.Required(form, "name")
	if err != nil {
		return frame.View{}, err
	}
	about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: name})
	if err != nil {
		return frame.View{}, err
	}
	e := policyEdit{topic: about.GetTopic(), saw: form.Get("saw"), wants: form.Get("policy"), refused: refused}
	v := frame.View{Title: "Change the policy of " + frame.Cut(name), Page: "overview"}
	if err := e.compare(); err != nil {
		e.refused, v.Code = status.Convert(err).Message(), http.StatusBadRequest
	}
	v.Body = e.body()
	return v, nil
}

// compare finds what the visitor changed of what they saw, which alone is to be made, and what others
// have changed since.
func (e *policyEdit) compare() error {
	wants, err := readPolicy(e.wants)
	if err != nil {
		return err
	}
	is := e.topic.GetPolicy()
	saw, err := readPolicy(e.saw)
	if err != nil { // a form of somebody's own has none
		saw, e.saw = is, policyText(is)
	}
	e.patch = new(ddqv1.TopicPolicy)
	fields := is.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		d := frame.Difference{Name: f.TextName(), Was: fieldText(saw, f), Is: fieldText(is, f), Wants: fieldText(wants, f)}
		if f.Name() == "shards" {
			continue
		}
		if d.Wants == "" || d.Wants == d.Was { // what is left out stays as it is
			d.Wants = d.Is
		} else {
			e.patch.ProtoReflect().Set(f, wants.ProtoReflect().Get(f))
		}
		if d.Wants != d.Is || d.Was != d.Is {
			e.all = append(e.all, d)
		}
	}
	return nil
}

// fieldText is a field of a policy in a line; empty when it is not set.
func fieldText(p *ddqv1.TopicPolicy, f protoreflect.FieldDescriptor) string {
	m := p.ProtoReflect()
	switch {
	case !m.Has(f):
		return ""
	case f.Message() != nil:
		return protojson.MarshalOptions{UseProtoNames: true}.Format(m.Get(f).Message().Interface())
	case f.Enum() != nil:
		return string(f.Enum().Values().ByNumber(m.Get(f).Enum()).Name())
	}
	return m.Get(f).String()
}

func (e *policyEdit) body() g.Node {
	all := g.Group{h.P(frame.OfTopic(e.topic.GetName())), g.If(e.refused != "", frame.Alert(e.refused))}
	if e.patch != nil {
		all = append(all, e.changes())
	}
	return append(all, h.H2(g.Text("What you want")), e.form())
}

// changes are what the edit does, with the button that makes it.
func (e *policyEdit) changes() g.Node {
	if len(e.all) == 0 {
		return h.P(g.Text("That is what the policy is: nothing would change."))
	}
	return g.Group{frame.Differences(e.all), frame.Post("topic/configure", h.Class("column"), e.hidden(policyText(e.topic.GetPolicy())),
		frame.Hidden("policy", policyText(e.patch)), frame.Button("Change it"))}
}

// form is where the edit goes on.
func (e *policyEdit) form() g.Node {
	return frame.Post("topic/policy", h.Class("column"), e.hidden(e.saw), policyField(e.wants), frame.Button("Look at the change", h.Class("plain")))
}

// hidden is what the forms send of the topic and of the policy that the visitor saw.
func (e *policyEdit) hidden(saw string) g.Node {
	return frame.Hidden("name", e.topic.GetName(), "version", fmt.Sprint(e.topic.GetVersion()), "saw", saw)
}

func policyField(text string) g.Node {
	return h.Label(
		g.Text("As JSON; what is left out stays as it is, and shards are changed with "), h.Code(g.Text("ddq cluster reshard")), g.Text(" "),
		frame.TextArea("policy", "16", text),
	)
}

// configureTopic makes a change that was looked at. When somebody was faster, it is looked at once more.
func (s *section) configureTopic(ctx context.Context, form url.Values) (string, string, error) {
	page, did, err := onTopic(form, "configured", func(name string) error {
		version, err := frame.Number(form, "version")
		if err != nil {
			return err
		}
		policy, err := readPolicy(form.Get("policy"))
		if err != nil {
			return err
		}
		r := &ddqv1.ConfigureTopicRequest{Name: name, Policy: policy}
		if version > 0 {
			r.IfVersion = &version
		}
		_, err = s.admin.ConfigureTopic(ctx, r)
		return err
	})
	var refused string
	switch status.Code(err) {
	case codes.Aborted:
		refused = "Nothing was changed: somebody else changed the topic since you looked."
	case codes.InvalidArgument:
		refused = status.Convert(err).Message()
	default:
		return page, did, err
	}
	v, failed := s.review(ctx, form, refused)
	if failed != nil {
		return page, did, err
	}
	if status.Code(err) == codes.InvalidArgument {
		v.Code = http.StatusBadRequest
	}
	return page, did, &frame.Question{View: v}
}
