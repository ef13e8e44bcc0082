package naming

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/requestid"
	"github.com/ddq-io/ddq/store"
)

// Names edits the messages of calls. It is safe for concurrent use.
type Names struct{ plans plans }

// New knows the messages of all methods.
func New() *Names { return &Names{newPlans()} }

// tokenMark separates the namespace of a page token from what the listing made. It is in neither.
const tokenMark = "."

// in is a namespace as messages are edited for it.
type in string

// full is the full name of what a caller names. A name that has a slash is none, and gets one more in front,
// by which it stays none: who looks at names refuses it, where the request may be refused in part.
func (ns in) full(name string) string {
	switch {
	case name == "":
		return ""
	case strings.IndexByte(name, '/') >= 0:
		return "/" + name
	}
	return store.FullName(string(ns), name)
}

// own is the name by which callers know what has a full name. Of another namespace they know nothing.
func (ns in) own(full string) string {
	if of, name := store.SplitName(full); of == string(ns) {
		return name
	}
	return ""
}

// readToken is the token of a page as its listing made it; one that no listing takes when it was given out in
// another namespace.
func (ns in) readToken(token string) string {
	if own, is := strings.CutPrefix(token, string(ns)+tokenMark); is || token == "" {
		return own
	}
	return tokenMark
}

func (ns in) writeToken(token string) string {
	if token == "" {
		return ""
	}
	return string(ns) + tokenMark + token
}

// quote takes the namespace off the names in a text for people.
func (ns in) quote(text string) string {
	prefix := string(ns) + "/"
	var out strings.Builder
	for {
		at := strings.Index(text, prefix)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at])
		if at > 0 && inName(text[at-1]) {
			out.WriteString(prefix)
		}
		text = text[at+len(prefix):]
	}
}

// inName reports whether a name goes on with c.
func inName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("._-/", c) >= 0
}

// Request makes the names in a request full ones.
func (n *Names) Request(namespace string, request any) {
	ns := in(namespace)
	switch r := request.(type) { // by hand where calls are frequent
	case *ddqv1.EnqueueRequest:
		r.Topic = ns.full(r.Topic)
	case *ddqv1.EnqueueBatchRequest:
		ns.enqueues(r.Tasks)
	case *ddqv1.EnqueueStreamRequest:
		ns.enqueues(r.Tasks)
	case *ddqv1.SubscribeRequest:
		n.frame(ns, r)
	case proto.Message:
		n.request(ns, r)
	}
}

func (ns in) enqueues(tasks []*ddqv1.EnqueueRequest) {
	for _, t := range tasks {
		if ns != store.DefaultNamespace || strings.IndexByte(t.Topic, '/') >= 0 {
			t.Topic = ns.full(t.Topic)
		}
	}
}

// frame is Request for a stream of deliveries, whose frames mostly name nothing.
func (n *Names) frame(ns in, r *ddqv1.SubscribeRequest) {
	if r.Hello != nil {
		n.request(ns, r.Hello)
	}
	for _, a := range r.Acks {
		if ns.enqueues(a.Enqueue); a.Grow != nil {
			n.request(ns, a.Grow)
		}
	}
}

func (n *Names) request(ns in, m proto.Message) {
	p := n.plans[m.ProtoReflect().Descriptor().FullName()]
	if p == nil {
		return
	}
	e := edit{name: ns.full}
	if ns != store.DefaultNamespace {
		e.token = ns.readToken
	}
	p.apply(m.ProtoReflect(), &e)
}

// Answer returns an answer with the names that callers know. The message may be changed for that.
func (n *Names) Answer(namespace string, answer any) any {
	m, is := answer.(proto.Message)
	if !is || namespace == store.DefaultNamespace {
		return answer
	}
	p := n.plans[m.ProtoReflect().Descriptor().FullName()]
	if p == nil {
		return answer
	}
	switch m.(type) {
	case *ddqv1.GetOverviewResponse, *ddqv1.WatchOverviewResponse: // callers share what is in them
		m = proto.Clone(m)
	}
	ns := in(namespace)
	if r, is := m.(*ddqv1.SubscribeResponse); is { // the frequent one
		ns.deliveries(r)
		return r
	}
	p.apply(m.ProtoReflect(), &edit{name: ns.own, token: ns.writeToken, text: ns.quote})
	return m
}

// deliveries is Answer for a stream of deliveries.
func (ns in) deliveries(r *ddqv1.SubscribeResponse) {
	for _, d := range r.Deliveries {
		ns.task(d.Task)
	}
	for _, s := range r.Settled {
		for _, result := range s.Results {
			if result.Error != nil {
				result.Error.Message = ns.quote(result.Error.Message)
			}
		}
	}
}

func (ns in) task(t *ddqv1.Task) {
	if t == nil {
		return
	}
	t.Topic = ns.own(t.Topic)
	if t.Step != nil {
		t.Step.WorkflowTopic = ns.own(t.Step.WorkflowTopic)
	}
	if t.Cause != nil {
		t.Cause.Topic = ns.own(t.Cause.Topic)
	}
}

// Error returns an error with the names that callers know.
func (n *Names) Error(namespace string, err error) error {
	if err == nil || namespace == store.DefaultNamespace {
		return err
	}
	return requestid.Edit(err, func(err error) error {
		e, is := err.(*problem.Error) //nolint:errorlint // what wraps one is not for callers
		if !is || e == nil {
			return err
		}
		own := *e
		own.Message = in(namespace).quote(e.Message)
		return &own
	})
}
