package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store/memstore"
)

// guardedRig is a rig whose server asks callers who they are.
type guardedRig struct {
	*rig
	access *access.Access
	key    auth.ClusterKey
	root   string
}

// guarded runs test on a server that asks, in fake time.
func guardedBubble(t *testing.T, test func(r *guardedRig)) {
	synctest.Test(t, func(t *testing.T) { guardedWith(t, Config{}, test) })
}

// guardedWith runs test on a server with a config that asks.
func guardedWith(t *testing.T, config Config, test func(r *guardedRig), members ...fleet.Member) {
	t.Helper()
	guardedOver(t, insecure.NewCredentials(), access.Config{}, config, test, members...)
}

// guardedOver is guardedWith for clients whose connection is secured, and who may be known by more than tokens.
func guardedOver(t *testing.T, secure credentials.TransportCredentials, who access.Config, config Config, test func(r *guardedRig), members ...fleet.Member) {
	t.Helper()
	_, root, _ := auth.NewToken()
	key := auth.NewClusterKey([]byte("0123456789abcdef"))
	who.On, who.Root, who.Node, who.Keys = true, root, "node", auth.NewClusterKeys(key)
	a, err := access.New(who, memstore.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	defer a.Stop()
	config.Access = a
	system := actors.Config{}
	if len(members) > 0 {
		system.Node = members[0].Name
	}
	r := newRigOver(t, secure, config, system, members...)
	defer r.close()
	test(&guardedRig{r, a, key, root.Reveal()})
}

// as is a context of calls with a token.
func (r *guardedRig) as(token string) context.Context {
	if token == "" {
		return r.Context()
	}
	return metadata.AppendToOutgoingContext(r.Context(), "authorization", "Bearer "+token)
}

// token makes one with the grants that texts stand for.
func (r *guardedRig) token(life time.Duration, grants ...string) (secret, id string) {
	r.Helper()
	req := &ddqv1.CreateTokenRequest{Name: strings.Join(grants, " ")}
	if life > 0 {
		req.Life = durationWire(life)
	}
	for _, text := range grants {
		g, err := auth.ParseGrant(text)
		if err != nil {
			r.Fatal(err)
		}
		req.Grants = append(req.Grants, grantsWire(auth.Grants{g})...)
	}
	made, err := ddqv1.NewAccessServiceClient(r.conn).CreateToken(r.as(r.root), req)
	if err != nil {
		r.Fatal(err)
	}
	return made.Secret, made.Token.Id
}

// methods are all that the server has, in order.
func (r *guardedRig) methods() (all []string) {
	for service, info := range r.server.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			all = append(all, "/"+service+"/"+m.Name)
		}
	}
	slices.Sort(all)
	return all
}

// request is a request of a method that is about a topic: every field called topic has it,
// and name, where that is a topic's.
func request(in protoreflect.MessageDescriptor, method, topic string) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(in.FullName())
	if err != nil {
		panic(err)
	}
	m := t.New().Interface()
	switch m := m.(type) {
	case *ddqv1.SubscribeRequest:
		m.Hello = &ddqv1.Hello{Topic: topic, Worker: "w", MaxInFlight: 1}
	case *ddqv1.EnqueueBatchRequest:
		m.Tasks = []*ddqv1.EnqueueRequest{{Topic: topic}}
	case *ddqv1.EnqueueStreamRequest:
		m.Tasks = []*ddqv1.EnqueueRequest{{Topic: topic}}
	case *ddqv1.PutScheduleRequest:
		m.Schedule = &ddqv1.Schedule{Topic: topic}
	case *ddqv1.PutSchedulesRequest:
		m.Schedules = []*ddqv1.PutScheduleRequest{{Schedule: &ddqv1.Schedule{Topic: topic}}}
	case *ddqv1.SubmitWorkflowRequest:
		m.Workflow = &ddqv1.Workflow{Topic: topic}
	case *ddqv1.SubmitWorkflowsRequest:
		m.Workflows = []*ddqv1.Workflow{{Topic: topic}}
	case *ddqv1.PreviewScheduleRequest:
		m.Of = &ddqv1.PreviewScheduleRequest_Schedule{Schedule: &ddqv1.Schedule{Topic: topic}}
	}
	fields := in.Fields()
	if f := fields.ByName("topic"); f != nil {
		m.ProtoReflect().Set(f, protoreflect.ValueOfString(topic))
	} else if f := fields.ByName("name"); f != nil && strings.Contains(method, "Topic") {
		m.ProtoReflect().Set(f, protoreflect.ValueOfString(topic))
	}
	return m
}

// call makes a call, whatever its kind, and returns what the guard said: the code of a
// refusal, ok, or items for one that refused each item.
func (r *guardedRig) call(ctx context.Context, conn *grpc.ClientConn, method string, topic string) string {
	r.Helper()
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(method[1:], "/", ".")))
	if err != nil {
		r.Fatal(err)
	}
	d := found.(protoreflect.MethodDescriptor)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	in := request(d.Input(), method, topic)
	outType, err := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if err != nil {
		r.Fatal(err)
	}
	out := outType.New().Interface()
	if d.IsStreamingClient() || d.IsStreamingServer() {
		stream, serr := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		if serr != nil {
			r.Fatal(serr)
		}
		if err = stream.SendMsg(in); err == nil || errors.Is(err, io.EOF) {
			_ = stream.CloseSend()
			err = stream.RecvMsg(out)
		}
	} else {
		err = conn.Invoke(ctx, method, in, out)
	}
	switch c := status.Code(err); {
	case c == codes.Unauthenticated:
		return "UNAUTH"
	case c == codes.PermissionDenied && reasonOf(err) == "NOT_ALLOWED":
		return "DENIED"
	}
	if itemsDenied(out) {
		return "DENIED"
	}
	return "ok"
}

func itemsDenied(out proto.Message) bool {
	var errs []*ddqv1.Error
	switch out := out.(type) {
	case *ddqv1.EnqueueBatchResponse:
		for _, r := range out.Results {
			errs = append(errs, r.GetError())
		}
	case *ddqv1.EnqueueStreamResponse:
		for _, r := range out.Results {
			errs = append(errs, r.GetError())
		}
	case *ddqv1.SubmitWorkflowsResponse:
		for _, r := range out.Results {
			errs = append(errs, r.GetError())
		}
	case *ddqv1.PutSchedulesResponse:
		for _, r := range out.Results {
			errs = append(errs, r.GetError())
		}
	}
	return slices.ContainsFunc(errs, func(e *ddqv1.Error) bool { return e.GetReason() == "NOT_ALLOWED" })
}

func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.Reason
		}
	}
	return ""
}

func TestRevokedAndExpiredTokensEndOpenStreams(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		if _, err := r.admin.CreateTopic(r.as(r.root), &ddqv1.CreateTopicRequest{Name: "mail"}); err != nil {
			t.Fatal(err)
		}
		revoked, id := r.token(0, "worker,producer:mail")
		expiring, _ := r.token(time.Minute, "worker,producer:mail")
		for what, secret := range map[string]string{"revoked": revoked, "expired": expiring} {
			limited, cancel := context.WithTimeout(r.as(secret), 2*time.Minute)
			defer cancel()
			work, err := r.queue.Subscribe(limited)
			if err != nil {
				t.Fatal(err)
			}
			credit := int32(1)
			if err := work.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", Worker: "w", MaxInFlight: 1}, Credit: &credit}); err != nil {
				t.Fatal(err)
			}
			if _, err := work.Recv(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			enqueue, err := r.queue.EnqueueStream(limited)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if what == "revoked" {
				if _, err := ddqv1.NewAccessServiceClient(r.conn).RevokeToken(r.as(r.root), &ddqv1.RevokeTokenRequest{Id: id}); err != nil {
					t.Fatal(err)
				}
			}
			for name, end := range map[string]func() error{
				"subscribe": func() error { _, err := work.Recv(); return err },
				"enqueue":   func() error { _, err := enqueue.Recv(); return err },
			} {
				if err := end(); status.Code(err) != codes.Unauthenticated {
					t.Errorf("%s, %s: %v", what, name, err)
				}
			}
			if took := time.Since(begun); what == "revoked" && took > 2*time.Second || took > time.Minute {
				t.Errorf("%s: ended after %v", what, took)
			}
			if _, err := r.queue.Enqueue(r.as(secret), &ddqv1.EnqueueRequest{Topic: "mail"}); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestItemsOfABatchAreRefusedAlone(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		secret, _ := r.token(0, "producer:mail*")
		out, err := r.queue.EnqueueBatch(r.as(secret), &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{
			{Topic: "mail"}, {Topic: "sms"}, {Topic: "mail-daily"}, {Topic: ""}, {Topic: "mail"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "NOT_ALLOWED", "", "NOT_ALLOWED", ""} {
			if got := out.Results[i].GetError().GetReason(); got != want {
				t.Errorf("item %d: %q, want %q", i, got, want)
			}
		}
	})
}

// keepOnce gives the task of the topic mail a journal of one entry, and gives it back.
func (r *guardedRig) keepOnce(value string) {
	r.Helper()
	got, err := r.queue.Retrieve(r.as(r.root), &ddqv1.RetrieveRequest{Topic: "mail", WaitMs: 1000})
	if err != nil || len(got.Deliveries) != 1 {
		r.Fatalf("retrieve: %v, %v", got, err)
	}
	d := got.Deliveries[0]
	if _, err := r.queue.Checkpoint(r.as(r.root), &ddqv1.CheckpointRequest{Topic: "mail", Checkpoint: &ddqv1.Checkpoint{
		TaskId: d.Task.Id, HoldToken: d.HoldToken, Name: "charge", Value: []byte(value),
	}}); err != nil {
		r.Fatal(err)
	}
	if _, err := r.queue.Nack(r.as(r.root), &ddqv1.NackRequest{Topic: "mail", Nack: &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Release: true}}); err != nil {
		r.Fatal(err)
	}
}

func TestPayloadsAreForThoseWhoMaySeeThem(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		if _, err := r.queue.Enqueue(r.as(r.root), &ddqv1.EnqueueRequest{Topic: "mail", Id: "a", Payload: []byte("canary")}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.schedules.PutSchedule(r.as(r.root), &ddqv1.PutScheduleRequest{Schedule: nightly(func(s *ddqv1.Schedule) {
			s.Topic, s.Run = "mail", &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Payload: []byte("canary")}}
		})}); err != nil {
			t.Fatal(err)
		}
		r.keepOnce("canary")
		viewer, _ := r.token(0, "viewer:mail")
		reader, _ := r.token(0, "viewer,payload:mail")
		for secret, want := range map[string]string{viewer: "", reader: "canary"} {
			one, err := r.queue.GetTask(r.as(secret), &ddqv1.GetTaskRequest{Topic: "mail", Id: "a"})
			if err != nil || string(one.Task.Payload) != want || one.Task.Masked != (want == "") {
				t.Errorf("get: %v, %v", one, err)
			}
			if j := one.GetTask().GetJournal(); len(j) != 1 || j[0].Name != "charge" || string(j[0].Value) != want || j[0].Size != 6 || j[0].KeptAt == nil {
				t.Errorf("journal: %v", j)
			}
			all, err := r.queue.ListTasks(r.as(secret), &ddqv1.ListTasksRequest{Topic: "mail"})
			if err != nil || len(all.Tasks) != 1 || string(all.Tasks[0].Payload) != want {
				t.Errorf("list: %v, %v", all, err)
			}
			nightly, err := r.schedules.GetSchedule(r.as(secret), &ddqv1.GetScheduleRequest{Topic: "mail", Name: "nightly"})
			if s := nightly.GetSchedule(); err != nil || string(s.GetTask().GetPayload()) != want || s.GetMasked() != (want == "") {
				t.Errorf("schedule: %v, %v", nightly, err)
			}
			wait, err := r.queue.WaitTask(r.as(secret), &ddqv1.WaitTaskRequest{Topic: "mail", Id: "a", WaitMs: 1})
			if err != nil || string(wait.GetTask().GetPayload()) != want {
				t.Errorf("wait: %v, %v", wait, err)
			}
		}
		// By its id alone a task is found by those who may see all topics.
		if _, err := r.queue.GetTask(r.as(viewer), &ddqv1.GetTaskRequest{Id: "a"}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("by its id alone: %v", err)
		}
		if _, err := r.queue.GetTask(r.as(r.root), &ddqv1.GetTaskRequest{Id: "a"}); err != nil {
			t.Errorf("by its id alone, as root: %v", err)
		}
	})
}

func TestListingsShowWhatMayBeRead(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		for _, name := range []string{"mail", "mail-daily", "sms"} {
			if _, err := r.admin.CreateTopic(r.as(r.root), &ddqv1.CreateTopicRequest{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		secret, _ := r.token(0, "viewer:mail*", "producer:sms")
		topics, err := r.admin.ListTopics(r.as(secret), &ddqv1.ListTopicsRequest{})
		if err != nil || len(topics.Topics) != 2 {
			t.Errorf("%v, %v", topics, err)
		}
		shards, err := r.admin.ListShards(r.as(secret), &ddqv1.ListShardsRequest{})
		if err != nil || len(shards.Shards) == 0 || slices.ContainsFunc(shards.Shards, func(s *ddqv1.Shard) bool { return s.Topic == "sms" }) {
			t.Errorf("%v, %v", shards, err)
		}
		for _, name := range []string{"mail", "sms"} {
			stream, err := r.queue.Subscribe(r.as(r.root))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: name, Worker: "w"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		seen, err := r.admin.GetOverview(r.as(secret), &ddqv1.GetOverviewRequest{})
		if err != nil || len(seen.Topics) != 2 || slices.ContainsFunc(seen.Topics, func(o *ddqv1.TopicOverview) bool { return o.Topic.GetName() == "sms" }) {
			t.Errorf("%v, %v", seen, err)
		}
		watched, err := r.admin.WatchOverview(r.as(secret), &ddqv1.WatchOverviewRequest{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.admin.WatchOverview(r.as(r.root), &ddqv1.WatchOverviewRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // they share what is read
			more, err := all.Recv()
			if err != nil || len(more.Overview.Topics) <= len(seen.Topics) {
				t.Errorf("%v, %v", more, err)
			}
			some, err := watched.Recv()
			if err != nil || len(some.Overview.Topics) != 2 || slices.ContainsFunc(some.Overview.Topics, func(o *ddqv1.TopicOverview) bool { return o.Topic.GetName() == "sms" }) {
				t.Errorf("%v, %v", some, err)
			}
		}
		for _, topic := range []string{"sms", "none"} { // nothing tells which one is there
			hidden, err := r.admin.WatchOverview(r.as(secret), &ddqv1.WatchOverviewRequest{Topic: topic})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := hidden.Recv(); status.Code(err) != codes.PermissionDenied {
				t.Errorf("watching %s: %v", topic, err)
			}
			if _, err := r.admin.GetOverview(r.as(secret), &ddqv1.GetOverviewRequest{Topic: topic}); status.Code(err) != codes.PermissionDenied {
				t.Errorf("looking at %s: %v", topic, err)
			}
		}
		workers, err := r.admin.ListWorkers(r.as(secret), &ddqv1.ListWorkersRequest{})
		if err != nil || len(workers.Workers) != 1 || workers.Workers[0].Topic != "mail" {
			t.Errorf("%v, %v", workers, err)
		}
	})
}

// TestNobodyPosesAsANode: the address is that of a node, so only the credential tells.
func TestNobodyPosesAsANode(t *testing.T) {
	here := []netip.Addr{clientAddr.Addr()}
	members := []fleet.Member{
		{Name: "node", Addr: "10.0.0.1:9090", State: fleet.MemberActive},
		{Name: "other", Addr: "b:9090", State: fleet.MemberActive, Hosts: here}, {Name: "third", Addr: "c:9090", State: fleet.MemberActive, Hosts: here},
	}
	synctest.Test(t, func(t *testing.T) {
		guardedWith(t, Config{}, func(r *guardedRig) {
			worker, _ := r.token(0, "worker")
			const method = ddqv1.DelayQueueService_Subscribe_FullMethodName
			node := func() context.Context {
				return metadata.AppendToOutgoingContext(r.Context(), "authorization", r.key.Sign("other", "node", method, time.Now()))
			}
			for what, c := range map[string]struct {
				ctx  context.Context
				node string
				want string
			}{
				"a worker":              {r.as(worker), "other", "NOT_A_NODE"},
				"root":                  {r.as(r.root), "other", "NOT_A_NODE"},
				"a node as another one": {node(), "third", "NOT_A_NODE"},
				"a node as a worker":    {node(), "", "NOT_A_NODE"},
			} {
				if got := r.subscribe(c.ctx, c.node); got != c.want {
					t.Errorf("%s: %q, want %q", what, got, c.want)
				}
			}
		}, members...)
	})
}

// subscribe is why a subscription to a topic that does not exist is refused.
func (r *guardedRig) subscribe(ctx context.Context, node string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	stream, err := r.queue.Subscribe(ctx)
	if err != nil {
		r.Fatal(err)
	}
	if err := stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", Worker: "w", MaxInFlight: 1, OnDemand: true, Node: node}}); err != nil {
		r.Fatal(err)
	}
	_, err = stream.Recv()
	return reasonOf(err)
}

// TestCallsThatNameNoTopic: who may do everything on some topics finds nothing in others by an id or a
// name alone. What such a caller may call at all shows or touches what it may see.
func TestCallsThatNameNoTopic(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		some, _ := r.token(0, "producer,worker,viewer,operator,admin,payload:mail*")
		var let []string
		for _, method := range r.methods() {
			if name, own := strings.CutPrefix(method, "/ddq.v1."); own && r.call(r.as(some), r.conn, method, "") == "ok" {
				let = append(let, name)
			}
		}
		want := []string{
			"AccessService/CreateToken", "AccessService/DeleteBinding", "AccessService/ListBindings", "AccessService/ListTokens", // within its grants
			"AccessService/PutBinding", "AccessService/RevokeToken", "AccessService/RotateToken", "AccessService/WhoAmI",
			"AdminService/DescribeServer", "AdminService/GetOverview", "AdminService/ListNodes", // no topics, but in the overview
			"AdminService/ListShards", "AdminService/ListTopics", "AdminService/ListWorkers", "AdminService/WatchOverview", // those that it may read
			"ScheduleService/GetCalendar", "ScheduleService/ListCalendars", // days, of no topic
			"ScheduleService/ListSchedules", "WorkflowService/ListWorkflows", // of topics that it may read
		}
		if !slices.Equal(let, want) {
			t.Errorf("let through:\n%s\nwant\n%s", strings.Join(let, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A node says what it logs to everybody, but for topics that they may not read.
func TestTopicsThatANodeLogsAreThoseOfTheCaller(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		for _, topic := range []string{"mail", "sms"} {
			_, err := r.service.Node().Peer().SetLogLevel(fleet.LogLevel{Level: new(slog.LevelDebug), Topic: topic, For: time.Hour})
			must(r.rig, err)
		}
		for grants, want := range map[string]string{"viewer": "[mail sms]", "viewer:mail": "[mail]", "producer:mail": "[]"} {
			token, _ := r.token(0, grants)
			list, err := r.admin.ListNodes(r.as(token), &ddqv1.ListNodesRequest{})
			must(r.rig, err)
			topics := []string{}
			for _, l := range list.Nodes[0].GetLogs().GetTopics() {
				topics = append(topics, l.Topic)
			}
			if got := fmt.Sprint(topics); got != want {
				t.Errorf("%s sees %s, want %s", grants, got, want)
			}
		}
	})
}

func TestCredentialsThatAreNone(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		_, stranger, _ := auth.NewToken()
		good, id := r.token(0, "admin:mail")
		swapped := good[:len("ddq_")] + stranger.Reveal()[len("ddq_"):len("ddq_")+10] + good[len("ddq_")+10:]
		for what, values := range map[string][]string{
			"": nil, "empty": {""}, "bearer": {"Bearer"}, "bearer, nothing": {"Bearer "}, "x": {"Bearer x"}, "basic": {"Basic cm9vdDpyb290"},
			"bare": {good}, "two": {"Bearer " + good, "Bearer " + good}, "unknown": {"Bearer " + stranger.Reveal()}, "another id": {"Bearer " + swapped},
			"cut": {"Bearer " + good[:63]}, "node": {"DDQ-Node x"}, "long": {"Bearer " + strings.Repeat("a", 4000)},
		} {
			ctx := r.Context()
			for _, v := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
			}
			_, err := r.admin.ListTopics(ctx, &ddqv1.ListTopicsRequest{})
			want := "BAD_CREDENTIALS"
			if what == "" || what == "empty" {
				want = "NO_CREDENTIALS"
			}
			if status.Code(err) != codes.Unauthenticated || reasonOf(err) != want {
				t.Errorf("%q: %v, want %s", what, err, want)
			}
		}
		who, err := ddqv1.NewAccessServiceClient(r.conn).WhoAmI(r.as(good), &ddqv1.WhoAmIRequest{})
		if err != nil || who.Kind != "token" || who.Id != id || !who.Authentication {
			t.Errorf("%v, %v", who, err)
		}
	})
}

// Whoever makes a token may not give what they have not.
func TestTokensStayWithinTheirMakers(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		tokens := ddqv1.NewAccessServiceClient(r.conn)
		maker, _ := r.token(time.Hour, "admin:mail*")
		grant := func(topics string, verbs ...string) []*ddqv1.Grant {
			return []*ddqv1.Grant{{Verbs: verbs, Namespace: auth.DefaultNamespace, Topics: topics}}
		}
		for what, c := range map[string]struct {
			req  *ddqv1.CreateTokenRequest
			want string
		}{
			"less":            {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "work")}, ""},
			"another topic":   {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("sms", "work")}, "BEYOND_GRANTS"},
			"all topics":      {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("*", "work")}, "BEYOND_GRANTS"},
			"another verb":    {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "audit")}, "BEYOND_GRANTS"},
			"longer":          {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "work"), Life: durationWire(2 * time.Hour)}, "BEYOND_GRANTS"},
			"for ever":        {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "work"), NeverExpires: true}, "BEYOND_GRANTS"},
			"no verb":         {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail")}, "BAD_GRANT"},
			"node":            {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "node")}, "BAD_GRANT"},
			"star in front":   {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("*mail", "work")}, "BAD_GRANT"},
			"no grants":       {&ddqv1.CreateTokenRequest{Name: "x"}, "BAD_GRANT"},
			"over ten years":  {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "work"), Life: durationWire(4000 * 24 * time.Hour)}, "BAD_GRANT"},
			"an unknown verb": {&ddqv1.CreateTokenRequest{Name: "x", Grants: grant("mail", "rule")}, "BAD_GRANT"},
		} {
			if _, err := tokens.CreateToken(r.as(maker), c.req); reasonOf(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
		}
		_, stranger := r.token(0, "worker:sms")
		if _, err := tokens.RevokeToken(r.as(maker), &ddqv1.RevokeTokenRequest{Id: stranger}); reasonOf(err) != "NO_TOKEN" {
			t.Errorf("revoking a token of others: %v", err)
		}
		if _, err := tokens.RotateToken(r.as(maker), &ddqv1.RotateTokenRequest{Id: stranger}); reasonOf(err) != "NO_TOKEN" {
			t.Errorf("rotating a token of others: %v", err)
		}
		all, err := tokens.ListTokens(r.as(maker), &ddqv1.ListTokensRequest{})
		if err != nil || len(all.Tokens) != 2 {
			t.Errorf("%v, %v: want its own and the one that it made", all, err)
		}
	})
}

func TestRotatedTokensOverlap(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		old, id := r.token(0, "viewer")
		made, err := ddqv1.NewAccessServiceClient(r.conn).RotateToken(r.as(r.root), &ddqv1.RotateTokenRequest{Id: id, Overlap: durationWire(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		works := func(secret string) bool {
			_, err := r.admin.ListTopics(r.as(secret), &ddqv1.ListTopicsRequest{})
			return err == nil
		}
		time.Sleep(time.Hour - time.Minute)
		if !works(old) || !works(made.Secret) {
			t.Error("both count until the overlap is over")
		}
		time.Sleep(2 * time.Minute)
		if works(old) || !works(made.Secret) {
			t.Error("only the new one counts after it")
		}
	})
}
