package naming

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// A field whose name has topic or audience in it is edited, unless it is here.
var notNames = map[protoreflect.FullName]string{
	"ddq.v1.Grant.topics":                       "a pattern, of a namespace that the grant names",
	"ddq.v1.ListPeerWorkersRequest.after_topic": "between nodes",
}

func TestEveryFieldWithANameIsEdited(t *testing.T) {
	all := newPlans()
	protoregistry.GlobalFiles.RangeFilesByPackage("ddq.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			d := file.Messages().Get(i)
			for j := range d.Fields().Len() {
				f := d.Fields().Get(j)
				suspect := strings.Contains(string(f.Name()), "topic") || strings.Contains(string(f.Name()), "audience")
				if !suspect || f.Kind() != protoreflect.StringKind || notNames[f.FullName()] != "" {
					continue
				}
				edited := false
				if p := all[d.FullName()]; p != nil {
					for _, name := range p.names {
						edited = edited || name == f
					}
				}
				if !edited {
					t.Errorf("%s is not edited", f.FullName())
				}
			}
		}
		return true
	})
	for name := range named {
		if protoMessage("ddq.v1."+protoreflect.FullName(name)) == nil {
			t.Errorf("there is no message %s", name)
		}
	}
}

func protoMessage(name protoreflect.FullName) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil
	}
	return t.New().Interface()
}

// fill sets every text of a message, and makes one of everything that is in it.
func fill(m protoreflect.Message, text string, depth int) {
	for i := range m.Descriptor().Fields().Len() {
		switch f := m.Descriptor().Fields().Get(i); {
		case f.IsMap() || f.Message() != nil && depth == 0:
		case f.Message() != nil && f.IsList():
			fill(m.Mutable(f).List().AppendMutable().Message(), text, depth-1)
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), text, depth-1)
		case f.Kind() == protoreflect.StringKind && !f.IsList():
			m.Set(f, protoreflect.ValueOfString(text))
		}
	}
}

// Frequent messages are edited by hand, and that does what their plans say.
func TestMessagesEditedByHandAreAsByPlan(t *testing.T) {
	names := New()
	for _, m := range []proto.Message{new(ddqv1.EnqueueRequest), new(ddqv1.EnqueueBatchRequest), new(ddqv1.EnqueueStreamRequest), new(ddqv1.SubscribeRequest)} {
		fill(m.ProtoReflect(), "x", 6)
		planned := proto.Clone(m)
		names.request("acme", planned)
		names.Request("acme", m)
		if !proto.Equal(m, planned) {
			t.Errorf("%T: by hand\n%v\nby plan\n%v", m, m, planned)
		}
	}
	for _, text := range []string{"acme/x", "zebra/x", "x"} {
		m, planned, ns := new(ddqv1.SubscribeResponse), new(ddqv1.SubscribeResponse), in("acme")
		fill(m.ProtoReflect(), text, 6)
		fill(planned.ProtoReflect(), text, 6)
		p := names.plans[m.ProtoReflect().Descriptor().FullName()]
		p.apply(planned.ProtoReflect(), &edit{name: ns.own, token: ns.writeToken, text: ns.quote})
		names.Answer("acme", m)
		if !proto.Equal(m, planned) {
			t.Errorf("%s: by hand\n%v\nby plan\n%v", text, m, planned)
		}
	}
}

func TestAnswersHaveTheNamesOfRequests(t *testing.T) {
	names := New()
	for _, namespace := range []string{store.DefaultNamespace, "acme"} {
		for _, name := range []string{"mail", "acme", "a.b-c_d"} {
			task := &ddqv1.Task{Topic: in(namespace).full(name), Step: &ddqv1.TaskStep{WorkflowTopic: in(namespace).full(name)}}
			got := names.Answer(namespace, &ddqv1.GetTaskResponse{Task: task}).(*ddqv1.GetTaskResponse).Task
			if got.Topic != name || got.Step.WorkflowTopic != name {
				t.Errorf("%s in %s: %v", name, namespace, got)
			}
		}
	}
	foreign := names.Answer("acme", &ddqv1.GetTaskResponse{Task: &ddqv1.Task{Topic: "zebra/mail"}}).(*ddqv1.GetTaskResponse)
	if foreign.Task.Topic != "" {
		t.Errorf("a name of another namespace: %q", foreign.Task.Topic)
	}
}

// Overviews are shared by all who watch.
func TestSharedAnswersStayAsTheyAre(t *testing.T) {
	shared := &ddqv1.TopicOverview{Topic: &ddqv1.Topic{Name: "acme/mail"}}
	for range 2 {
		got := New().Answer("acme", &ddqv1.GetOverviewResponse{Topics: []*ddqv1.TopicOverview{shared}}).(*ddqv1.GetOverviewResponse)
		if name := got.Topics[0].Topic.Name; name != "mail" {
			t.Fatalf("got %q", name)
		}
	}
}

func TestTextsOfErrorsQuoteNamesOfCallers(t *testing.T) {
	for text, want := range map[string]string{
		`no topic "acme/mail"`:                       `no topic "mail"`,
		"in topics acme/mail and acme/sms; name one": "in topics mail and sms; name one",
		"schedule acme/mail/nightly":                 "schedule mail/nightly",
		"zacme/mail, x/acme/mail":                    "zacme/mail, x/acme/mail",
		"":                                           "",
	} {
		err := New().Error("acme", &problem.Error{Kind: problem.NotFound, Message: text})
		var e *problem.Error
		if !errors.As(err, &e) || e.Message != want || e.Kind != problem.NotFound {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := New().Error("acme", nil); err != nil {
		t.Error(err)
	}
}

// FuzzNames: whatever callers of two namespaces name, they never mean the same topic, unless both are refused.
func FuzzNames(f *testing.F) {
	for _, seed := range [][4]string{
		{"default", "acme/mail", "acme", "mail"}, {"a", "b", "a", "b"}, {"a-b", "c", "a", "b/c"}, {"acme", "/mail", "default", "acme//mail"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, oneSpace, one, otherSpace, other string) {
		if !store.IsNamespace(oneSpace) || !store.IsNamespace(otherSpace) || oneSpace == otherSpace && one == other {
			return
		}
		a, b := in(oneSpace).full(one), in(otherSpace).full(other)
		if a != b || a == "" {
			return
		}
		if namespace, _ := store.SplitName(a); store.IsNamespace(namespace) {
			t.Errorf("%q of %s and %q of %s are both %q", one, oneSpace, other, otherSpace, a)
		}
	})
}

// With the default namespace a frame of tasks costs no allocation.
func TestTheDefaultNamespaceAllocatesNothing(t *testing.T) {
	names, frame := New(), &ddqv1.EnqueueStreamRequest{}
	for range 100 {
		frame.Tasks = append(frame.Tasks, &ddqv1.EnqueueRequest{Topic: "mail"})
	}
	acks := &ddqv1.SubscribeRequest{Acks: []*ddqv1.Ack{{TaskId: "x"}}}
	answer := any(&ddqv1.SubscribeResponse{Deliveries: []*ddqv1.Delivery{{Task: &ddqv1.Task{Topic: "mail"}}}})
	if n := testing.AllocsPerRun(100, func() {
		names.Request(store.DefaultNamespace, frame)
		names.Request(store.DefaultNamespace, acks)
		names.Answer(store.DefaultNamespace, answer)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, namespace := range []string{store.DefaultNamespace, "acme"} {
		b.Run(namespace, func(b *testing.B) {
			names, frame := New(), &ddqv1.EnqueueStreamRequest{}
			for range 100 {
				frame.Tasks = append(frame.Tasks, new(ddqv1.EnqueueRequest))
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, t := range frame.Tasks {
					t.Topic = "mail"
				}
				names.Request(namespace, frame)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, namespace := range []string{store.DefaultNamespace, "acme"} {
		b.Run(namespace, func(b *testing.B) {
			names, frame := New(), &ddqv1.SubscribeResponse{}
			for range 100 {
				frame.Deliveries = append(frame.Deliveries, &ddqv1.Delivery{Task: new(ddqv1.Task)})
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, d := range frame.Deliveries {
					d.Task.Topic = in(namespace).full("mail")
				}
				names.Answer(namespace, frame)
			}
		})
	}
}
