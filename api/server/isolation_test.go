package server

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// sharers are namespaces with equal topics, ids and keys. Each knows its own name by what is in its payloads.
type sharers struct{ *guardedRig }

// tenantsBubble runs test with namespaces in which everything has the same name.
func tenantsBubble(t *testing.T, test func(r *sharers)) {
	guardedBubble(t, func(g *guardedRig) {
		r := &sharers{g}
		for _, namespace := range []string{"acme", "zebra", "default"} {
			r.fill(namespace)
		}
		time.Sleep(2 * time.Second) // overviews are made anew
		test(r)
	})
}

// in is a context of calls by the root token in a namespace.
func (r *sharers) in(namespace string) context.Context { return inNamespace(r.as(r.root), namespace) }

func inNamespace(ctx context.Context, names ...string) context.Context {
	for _, name := range names {
		ctx = metadata.AppendToOutgoingContext(ctx, "ddq-namespace", name)
	}
	return ctx
}

// fill makes some of everything in a namespace.
func (r *sharers) fill(namespace string) {
	r.Helper()
	if namespace != "default" {
		if _, err := ddqv1.NewAccessServiceClient(r.conn).CreateNamespace(r.as(r.root), &ddqv1.CreateNamespaceRequest{Name: namespace}); err != nil {
			r.Fatal(err)
		}
	}
	ctx, mark := r.in(namespace), []byte("canary of "+namespace)
	audiences := ddqv1.NewAudienceServiceClient(r.conn)
	for what, do := range map[string]func() error{
		"topic": func() error {
			_, err := r.admin.CreateTopic(ctx, &ddqv1.CreateTopicRequest{Name: "mail"})
			return err
		},
		"audience": func() error {
			_, err := audiences.CreateAudience(ctx, &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{Name: "users", Shards: 1}})
			return err
		},
	} {
		if err := do(); err != nil {
			r.Fatalf("%s of %s: %v", what, namespace, err)
		}
	}
	if _, err := audiences.PutRecipients(ctx, &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: []*ddqv1.Recipient{{Id: "x", Data: mark}}}); err != nil {
		r.Fatal(err)
	}
	for _, task := range []*ddqv1.EnqueueRequest{
		{Topic: "mail", Id: "x", Payload: mark, When: &ddqv1.EnqueueRequest_Delay{Delay: durationWire(1000 * time.Hour)}},
		{Topic: "mail", Payload: mark, When: &ddqv1.EnqueueRequest_Delay{Delay: durationWire(1000 * time.Hour)}, Idempotency: &ddqv1.Idempotency{Key: "x"}},
		{Topic: "other", Id: "y", Payload: mark, When: &ddqv1.EnqueueRequest_Delay{Delay: durationWire(1000 * time.Hour)}, FairnessKey: "x"},
	} {
		if _, err := r.queue.Enqueue(ctx, task); err != nil {
			r.Fatalf("enqueue in %s: %v", namespace, err)
		}
	}
	if _, err := r.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: nightly(func(s *ddqv1.Schedule) {
		s.Topic, s.Name, s.Run = "mail", "x", &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Payload: mark}}
	})}); err != nil {
		r.Fatal(err)
	}
	if _, err := r.workflows.SubmitWorkflow(ctx, &ddqv1.SubmitWorkflowRequest{Workflow: tenantFlow("x", mark)}); err != nil {
		r.Fatal(err)
	}
}

// tenantFlow is a workflow with steps in two topics.
func tenantFlow(id string, payload []byte) *ddqv1.Workflow {
	step := func(name, topic string) *ddqv1.Step {
		return &ddqv1.Step{Name: name, Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Topic: topic, Payload: payload}}}
	}
	return &ddqv1.Workflow{Topic: "mail", Id: id, Steps: []*ddqv1.Step{step("here", ""), step("there", "other")}}
}

// dump is all that a namespace has, as its own callers see it.
func (r *sharers) dump(namespace string) string {
	r.Helper()
	ctx, audiences := r.in(namespace), ddqv1.NewAudienceServiceClient(r.conn)
	var out strings.Builder
	add := func(m proto.Message, err error) {
		r.Helper()
		if err != nil {
			r.Fatalf("dump of %s: %v", namespace, err)
		}
		out.WriteString(prototext.Format(m))
	}
	topics, err := r.admin.ListTopics(ctx, &ddqv1.ListTopicsRequest{})
	add(topics, err)
	for _, topic := range []string{"mail", "other"} {
		for _, state := range []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_UNSPECIFIED, ddqv1.TaskState_TASK_STATE_DONE, ddqv1.TaskState_TASK_STATE_DEAD} {
			tasks, err := r.queue.ListTasks(ctx, &ddqv1.ListTasksRequest{Topic: topic, State: state})
			add(tasks, err)
		}
	}
	schedules, err := r.schedules.ListSchedules(ctx, &ddqv1.ListSchedulesRequest{})
	add(schedules, err)
	flows, err := r.workflows.ListWorkflows(ctx, &ddqv1.ListWorkflowsRequest{})
	add(flows, err)
	flow, err := r.workflows.GetWorkflow(ctx, &ddqv1.GetWorkflowRequest{Topic: "mail", Id: "x"})
	add(flow, err)
	users, err := audiences.ListAudiences(ctx, &ddqv1.ListAudiencesRequest{})
	add(users, err)
	recipients, err := audiences.ListRecipients(ctx, &ddqv1.ListRecipientsRequest{Audience: "users"})
	add(recipients, err)
	return out.String()
}

// fillRequest sets what a request can name: topics, audiences, and ids and names of what is in them.
func fillRequest(m protoreflect.Message, method string, depth int) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		text := ""
		switch f.Name() {
		case "topic":
			text = "mail"
		case "audience":
			text = "users"
		case "name":
			switch parent := string(m.Descriptor().Name()); {
			case strings.Contains(parent, "Topic"):
				text = "mail"
			case strings.Contains(parent, "Audience"):
				text = "users"
			default:
				text = "x"
			}
		case "id", "task_id", "step", "key":
			text = "x"
		}
		switch {
		case f.IsMap() || f.ContainingOneof() != nil && f.Message() == nil:
		case f.Message() != nil && f.Message().ParentFile().Package() == "ddq.v1" && depth < 3:
			if f.IsList() {
				one := m.Mutable(f).List().AppendMutable().Message()
				fillRequest(one, method, depth+1)
			} else if f.ContainingOneof() == nil || m.WhichOneof(f.ContainingOneof()) == nil {
				fillRequest(m.Mutable(f).Message(), method, depth+1)
			}
		case f.Kind() == protoreflect.StringKind && text != "" && !f.IsList():
			m.Set(f, protoreflect.ValueOfString(text))
		case f.Kind() == protoreflect.StringKind && f.IsList() && f.Name() == "ids":
			m.Mutable(f).List().Append(protoreflect.ValueOfString("x"))
		}
	}
}

// requestsOf are requests of a method: one that names all that it can, one that names nothing, and one with ids
// and without topics, where the method searches for them.
func requestsOf(d protoreflect.MethodDescriptor) (all []proto.Message) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	if err != nil {
		panic(err)
	}
	named := t.New()
	fillRequest(named, string(d.Name()), 0)
	all = append(all, t.New().Interface(), request(d.Input(), string(d.FullName()), "mail"), named.Interface())
	if topic := d.Input().Fields().ByName("topic"); topic != nil {
		searching := proto.Clone(named.Interface())
		searching.ProtoReflect().Clear(topic)
		all = append(all, searching)
	}
	return all
}

// answers makes a call and returns what came of it, as text.
func (r *sharers) answers(ctx context.Context, d protoreflect.MethodDescriptor, in proto.Message) string {
	r.Helper()
	method := "/" + string(d.Parent().FullName()) + "/" + string(d.Name())
	outType, err := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if !d.IsStreamingClient() && !d.IsStreamingServer() {
		out := outType.New().Interface()
		err := r.conn.Invoke(ctx, method, in, out)
		return answerText(out, err)
	}
	stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		r.Fatal(err)
	}
	if err := stream.SendMsg(in); err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	var text strings.Builder
	for range 5 {
		out := outType.New().Interface()
		err := stream.RecvMsg(out)
		text.WriteString(answerText(out, err))
		if err != nil {
			break
		}
	}
	return text.String()
}

func answerText(out proto.Message, err error) string {
	if err != nil {
		return prototext.Format(status.Convert(err).Proto())
	}
	return prototext.Format(out)
}

// Each method, called by who may do everything in a namespace, neither shows nor changes anything of others in
// which everything has the same name.
func TestNamespacesDoNotSeeEachOther(t *testing.T) {
	tenantsBubble(t, func(r *sharers) {
		made, err := ddqv1.NewAccessServiceClient(r.conn).CreateToken(r.in("acme"), &ddqv1.CreateTokenRequest{
			Name: "all", Grants: []*ddqv1.Grant{{Verbs: []string{"enqueue", "work", "read", "payload", "operate", "admin"}, Topics: "*"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := r.as(made.Secret) // in the namespace of the token
		before := map[string]string{"zebra": r.dump("zebra"), "default": r.dump("default")}
		if !strings.Contains(r.dump("acme"), "canary of acme") {
			t.Fatal("nothing is in acme")
		}
		methods := r.methods()
		ending := func(method string) int { // what deletes comes last
			name := method[strings.LastIndexByte(method, '/')+1:]
			if strings.HasPrefix(name, "Delete") || strings.HasPrefix(name, "Purge") || strings.HasPrefix(name, "Cancel") {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(methods, func(a, b string) int { return ending(a) - ending(b) })
		walked := 0
		for _, method := range methods {
			if !strings.HasPrefix(method, "/ddq.v1.") {
				continue
			}
			found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(method[1:], "/", ".")))
			if err != nil {
				t.Fatal(err)
			}
			walked++
			for _, in := range requestsOf(found.(protoreflect.MethodDescriptor)) {
				got := r.answers(ctx, found.(protoreflect.MethodDescriptor), in)
				for _, foreign := range []string{"zebra", "canary of default", "acme/"} {
					if strings.Contains(got, foreign) {
						t.Errorf("%s shows %q:\n%s\nasked by\n%s", method, foreign, got, prototext.Format(in))
					}
				}
			}
			for namespace, was := range before {
				if now := r.dump(namespace); now != was {
					t.Fatalf("%s changed %s:\n%s\nbefore:\n%s", method, namespace, now, was)
				}
			}
		}
		if walked < 90 {
			t.Errorf("%d methods", walked)
		}
	})
}

func TestNamesOfNamespacesInCalls(t *testing.T) {
	tenantsBubble(t, func(r *sharers) {
		tenant, _ := r.token(0, "producer:mail*") // of the default namespace
		get := func(ctx context.Context, topic string) string {
			_, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: topic})
			if err == nil {
				return ""
			}
			return status.Code(err).String() + " " + reasonOf(err)
		}
		long := strings.Repeat("a", 64)
		for _, c := range []struct {
			what string
			ctx  context.Context
			want string
		}{
			{"its own", r.as(tenant), ""},
			{"its own, named", inNamespace(r.as(tenant), "default"), ""},
			{"another one", inNamespace(r.as(tenant), "acme"), "PermissionDenied NOT_ALLOWED"},
			{"one that is not there", inNamespace(r.as(tenant), "nobody"), "PermissionDenied NOT_ALLOWED"},
			{"one that is not there, by root", inNamespace(r.as(r.root), "nobody"), "NotFound NO_NAMESPACE"},
			{"by root", inNamespace(r.as(r.root), "acme"), ""},
			{"no name", inNamespace(r.as(r.root), "../x"), "InvalidArgument BAD_NAME"},
			{"an empty one", inNamespace(r.as(r.root), ""), "InvalidArgument BAD_NAME"},
			{"too long", inNamespace(r.as(r.root), long), "InvalidArgument NAME_TOO_LONG"},
			{"twice", inNamespace(r.as(r.root), "acme", "acme"), "InvalidArgument BAD_NAME"},
		} {
			if got := get(c.ctx, "mail"); got != c.want {
				t.Errorf("%s: %q, want %q", c.what, got, c.want)
			}
		}
		for _, topic := range []string{"acme/mail", "/mail", "a%2fb", "..", "ma}il", "m\u0430il", "zebra/mail"} {
			for _, ctx := range []context.Context{r.as(r.root), r.in("acme")} {
				if got := get(ctx, topic); got != "InvalidArgument BAD_NAME" {
					t.Errorf("topic %q: %q", topic, got)
				}
			}
		}
	})
}

// A page token is of the namespace in which it was given out.
func TestPageTokensAreOfTheirNamespace(t *testing.T) {
	tenantsBubble(t, func(r *sharers) {
		list := func(namespace, token string) (*ddqv1.ListTopicsResponse, error) {
			return r.admin.ListTopics(r.in(namespace), &ddqv1.ListTopicsRequest{PageSize: 1, PageToken: token})
		}
		for _, namespace := range []string{"acme", "default"} {
			first, err := list(namespace, "")
			if err != nil || len(first.Topics) != 1 || first.Topics[0].Name != "mail" || first.NextPageToken == "" {
				t.Fatalf("%s: %v, %v", namespace, first, err)
			}
			second, err := list(namespace, first.NextPageToken)
			if err != nil || len(second.Topics) != 1 || second.Topics[0].Name != "other" || second.NextPageToken != "" {
				t.Errorf("%s: %v, %v", namespace, second, err)
			}
			if namespace == "default" {
				continue // its tokens are those of before
			}
			for _, other := range []string{"zebra", "default"} {
				if _, err := list(other, first.NextPageToken); status.Code(err) != codes.InvalidArgument {
					t.Errorf("in %s: %v", other, err)
				}
			}
		}
		first, _ := list("default", "")
		if _, err := list("acme", first.NextPageToken); status.Code(err) != codes.InvalidArgument {
			t.Errorf("that of default in acme: %v", err)
		}
	})
}

func TestNamespacesAreMadeAndDeletedByWhoMayDoEverything(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		access := ddqv1.NewAccessServiceClient(r.conn)
		tenant, _ := r.token(0, "admin")
		create := func(secret, name string) string {
			_, err := access.CreateNamespace(r.as(secret), &ddqv1.CreateNamespaceRequest{Name: name})
			return reasonOf(err)
		}
		for _, c := range []struct{ secret, name, want string }{
			{tenant, "acme", "NOT_ALLOWED"}, {r.root, "acme", ""}, {r.root, "acme", "NAMESPACE_EXISTS"}, {r.root, "default", "NAMESPACE_EXISTS"},
			{r.root, "A", "BAD_NAME"}, {r.root, strings.Repeat("a", 64), "NAME_TOO_LONG"}, {r.root, "", "BAD_NAME"},
		} {
			if got := create(c.secret, c.name); got != c.want {
				t.Errorf("create %q: %q, want %q", c.name, got, c.want)
			}
		}
		inside := inNamespace(r.as(r.root), "acme")
		if _, err := r.queue.Enqueue(inside, &ddqv1.EnqueueRequest{Topic: "mail"}); err != nil {
			t.Fatal(err)
		}
		deleted := func(name string) string {
			_, err := access.DeleteNamespace(r.as(r.root), &ddqv1.DeleteNamespaceRequest{Name: name})
			return reasonOf(err)
		}
		if got := deleted("acme"); got != "NAMESPACE_NOT_EMPTY" {
			t.Errorf("with a topic: %q", got)
		}
		if _, err := r.admin.DeleteTopic(inside, &ddqv1.DeleteTopicRequest{Name: "mail", Force: true}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ name, want string }{{"acme", ""}, {"acme", "NO_NAMESPACE"}, {"default", "NAMESPACE_NOT_EMPTY"}} {
			if got := deleted(c.name); got != c.want {
				t.Errorf("delete %s: %q, want %q", c.name, got, c.want)
			}
		}
		if _, err := r.queue.Enqueue(inside, &ddqv1.EnqueueRequest{Topic: "mail"}); reasonOf(err) != "NO_NAMESPACE" {
			t.Errorf("in one that is deleted: %v", err)
		}
		all, err := access.ListNamespaces(r.as(r.root), &ddqv1.ListNamespacesRequest{})
		if err != nil || len(all.Namespaces) != 1 || all.Namespaces[0].Name != "default" {
			t.Errorf("left are %v, %v", all, err)
		}
	})
}

// What is shown of all topics together, as metrics are, is for who may see those of all namespaces.
func TestWhatIsOfAllNamespacesIsForThoseWhoMaySeeAll(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		viewer, _ := r.token(0, "viewer")
		auditor, _ := r.token(0, "auditor")
		may := func(secret string) bool {
			return r.server.Authorize(t.Context(), []string{"Bearer " + secret}, ddqv1.DelayQueueService_CountTasks_FullMethodName) == nil
		}
		if !may(viewer) || !may(auditor) {
			t.Error("while there is one namespace: refused")
		}
		if _, err := ddqv1.NewAccessServiceClient(r.conn).CreateNamespace(r.as(r.root), &ddqv1.CreateNamespaceRequest{Name: "acme"}); err != nil {
			t.Fatal(err)
		}
		if may(viewer) || !may(auditor) {
			t.Errorf("while there are two: viewer %v, auditor %v", may(viewer), may(auditor))
		}
	})
}
