package peer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// otherNode is the node at the other end, as a test plays it.
type otherNode struct {
	logs *ddqv1.NodeLogs
	ddqv1.UnimplementedDelayQueueServiceServer
	ddqv1.UnimplementedPeerServiceServer
	play func(subscribeServer) error // one subscription

	mu      sync.Mutex
	notices []*ddqv1.NotifyRequest // guarded by mu
	streams int                    // of notices; guarded by mu
	cut     chan struct{}          // ends the streams of notices
}

type subscribeServer = grpc.BidiStreamingServer[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]

func (o *otherNode) Subscribe(s subscribeServer) error { return o.play(s) }

func (o *otherNode) Notify(s grpc.ClientStreamingServer[ddqv1.NotifyRequest, ddqv1.NotifyResponse]) error {
	o.mu.Lock()
	o.streams++
	o.mu.Unlock()
	frames := make(chan error, 1)
	go func() {
		for {
			f, err := s.Recv()
			if err != nil {
				frames <- err
				return
			}
			o.mu.Lock()
			o.notices = append(o.notices, f)
			o.mu.Unlock()
		}
	}()
	select {
	case err := <-frames:
		return err
	case <-o.cut:
		return errors.New("cut")
	}
}

func (o *otherNode) DescribePeer(_ context.Context, r *ddqv1.DescribePeerRequest) (*ddqv1.DescribePeerResponse, error) {
	shard := &ddqv1.OwnedShard{Topic: "mail", Shard: 3, Epoch: 7, Wheel: 11, Ready: 1, Held: 2, LatenessMs: 9}
	if r.DueSoon {
		shard.DueFromUnixMs, shard.DueUntilUnixMs, shard.Due = 1000, 3000, []int64{0, 4}
	}
	var pulses []*ddqv1.PeerPulse
	for _, topic := range r.Pulses {
		pulses = append(pulses, wire.PeerPulses(map[string]*pulse.Report{topic: otherPulse()})...)
	}
	return &ddqv1.DescribePeerResponse{Pulses: pulses, PulsesIncomplete: pulses != nil, Node: "b", UptimeMs: 5000, ClockOffsetUs: -1500, Subscriptions: 2, Shards: []*ddqv1.OwnedShard{shard}, Logs: o.logs}, nil
}

func (o *otherNode) ListPeerWorkers(_ context.Context, r *ddqv1.ListPeerWorkersRequest) (*ddqv1.ListPeerWorkersResponse, error) {
	return &ddqv1.ListPeerWorkersResponse{Workers: []*ddqv1.PeerWorker{
		{Number: r.AfterNumber + int64(r.Most), Worker: &ddqv1.Worker{Name: r.AfterTopic, Topic: r.Topic, SinceUnixMs: 9, InFlight: 1, Credit: 2, MaxInFlight: 3, Client: "py"}},
		{},
	}}, nil
}

func (o *otherNode) ListPeerAudit(_ context.Context, r *ddqv1.ListPeerAuditRequest) (*ddqv1.ListPeerAuditResponse, error) {
	if r.Before == 13 {
		refused, _ := status.New(codes.InvalidArgument, "no").WithDetails(&errdetails.ErrorInfo{Reason: "BAD_CURSOR"}) // it can have them
		return nil, refused.Err()
	}
	return &ddqv1.ListPeerAuditResponse{
		None: r.Before == 0, End: r.Before, Next: int64(r.Most + r.Bytes), ReachedUnixUs: 1_000_001,
		Lines: []*ddqv1.PeerAuditLine{{Text: []byte(r.Filter.String()), At: 5, TimeUnixUs: 2_000_002, Altered: true}, {}},
	}, nil
}

func (o *otherNode) VerifyPeerAudit(context.Context, *ddqv1.VerifyPeerAuditRequest) (*ddqv1.VerifyPeerAuditResponse, error) {
	return &ddqv1.VerifyPeerAuditResponse{Chain: &ddqv1.AuditChain{
		State: ddqv1.AuditChainState_AUDIT_CHAIN_STATE_BROKEN, Records: 3, Head: "h", Error: "line 4", CheckTime: timestamppb.New(time.Unix(9, 0)),
	}}, nil
}

// pings lets nodes ping as often as a real one does.
var pings = grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})

// bubble runs a test with a node that other plays.
func bubble(t *testing.T, other *otherNode, test func(t *testing.T, p *Peers)) {
	synctest.Test(t, func(t *testing.T) {
		other.cut = make(chan struct{}, 1)
		lis := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto), pings)
		ddqv1.RegisterDelayQueueServiceServer(server, other)
		ddqv1.RegisterPeerServiceServer(server, other)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(lis) })
		p := New(Config{DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		}}, slog.New(slog.DiscardHandler))
		defer func() {
			_ = p.Close()
			_ = p.Close()
			server.Stop()
			serving.Wait()
		}()
		test(t, p)
	})
}

var nodeB = fleet.Member{Name: "b", Addr: "passthrough:///b"}

// recorder is a Link that keeps what it hears.
type recorder struct {
	mu     sync.Mutex
	events []string
	tasks  []subscription.Delivery
	ready  int
	void   int

	cancels []subscription.CancelAsk
	err     error

	full chan struct{} // until it is closed there is no room; nil: there is
}

func (r *recorder) Await(ctx context.Context) {
	if r.full != nil {
		select {
		case <-r.full:
		case <-ctx.Done():
		}
	}
}

func (r *recorder) note(event string, edit func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
	edit()
}

func (r *recorder) Opened() { r.note("opened", func() {}) }
func (r *recorder) Deliver(tasks []subscription.Delivery) {
	r.note("deliver", func() { r.tasks = append(r.tasks, tasks...) })
}
func (r *recorder) Demand(ready, returned int) {
	r.note("demand", func() { r.ready, r.void = ready, r.void+returned })
}
func (r *recorder) Cancel(asks []subscription.CancelAsk) {
	r.note("cancel", func() { r.cancels = append(r.cancels, asks...) })
}
func (r *recorder) Closed(err error) { r.note("closed", func() { r.err = err }) }

func TestSubscriptionFromHelloToGoodbye(t *testing.T) {
	var hello *ddqv1.Hello
	granted := 0
	other := &otherNode{play: func(s subscribeServer) error {
		first, err := s.Recv()
		if err != nil {
			return err
		}
		hello = first.Hello
		if err := s.Send(&ddqv1.SubscribeResponse{Subscribed: &ddqv1.Subscribed{Node: "b"}}); err != nil {
			return err
		}
		if err := s.Send(&ddqv1.SubscribeResponse{Demand: &ddqv1.Demand{Ready: 5}}); err != nil {
			return err
		}
		for granted < 5 {
			m, err := s.Recv()
			if err != nil {
				return err
			}
			granted += int(m.GetCredit())
		}
		if err := s.Send(&ddqv1.SubscribeResponse{
			Deliveries: []*ddqv1.Delivery{{Task: &ddqv1.Task{Id: "a", Payload: []byte("p"), RetryCount: 2, MaxRetries: 4,
				HoldDeadline: &timestamppb.Timestamp{Seconds: 7, Nanos: 9e6}}, HoldToken: []byte("t"), HoldMs: 1500}},
			Demand: &ddqv1.Demand{Returned: 4},
		}); err != nil {
			return err
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			return errors.New("no goodbye")
		}
		return nil
	}}
	bubble(t, other, func(t *testing.T, p *Peers) {
		link := &recorder{}
		sub := p.Subscribe(nodeB, subscription.Options{
			Topic: "mail", Worker: "w", MaxInFlight: 9, Visibility: 2 * time.Second, LocalOnly: true, OnDemand: true, Peer: "a", MaxBytes: 1 << 20,
		}, link)
		synctest.Wait()
		sub.Grant(2)
		sub.Grant(3)
		synctest.Wait()
		sub.Close()
		sub.Close()
		synctest.Wait()
		if hello.Topic != "mail" || hello.Worker != "w" || hello.MaxInFlight != 9 || hello.VisibilityTimeoutMs != 2000 ||
			!hello.LocalShardsOnly || !hello.OnDemand || hello.Node != "a" || hello.MaxBytes != 1<<20 {
			t.Errorf("hello %v", hello)
		}
		if want := []string{"opened", "demand", "deliver", "demand", "closed"}; !slices.Equal(link.events, want) || link.err != nil {
			t.Fatalf("heard %v and %v, want %v", link.events, link.err, want)
		}
		d := link.tasks[0]
		if d.Topic != "mail" || d.Task.ID != "a" || string(d.Task.Payload) != "p" || d.Task.Attempt != 3 || d.MaxRetries != 4 ||
			string(d.Token) != "t" || d.HoldFor != 1500*time.Millisecond || d.Deadline != 7009 || link.void != 4 {
			t.Errorf("got %+v %+v, %d void", d, d.Task, link.void)
		}
	})
}

func TestSubscriptionReadsNoMoreThanThereIsRoomFor(t *testing.T) {
	other := &otherNode{play: func(s subscribeServer) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		for _, f := range []*ddqv1.SubscribeResponse{
			{Subscribed: &ddqv1.Subscribed{Node: "b"}},
			{Deliveries: []*ddqv1.Delivery{{Task: &ddqv1.Task{Id: "a"}, HoldMs: 1000}}},
		} {
			if err := s.Send(f); err != nil {
				return err
			}
		}
		_, err := s.Recv()
		return err
	}}
	for name, end := range map[string]func(sub fleet.RemoteSubscription, link *recorder) (tasks int){
		"until there is room": func(_ fleet.RemoteSubscription, link *recorder) int { close(link.full); return 1 },
		"until it is over":    func(sub fleet.RemoteSubscription, _ *recorder) int { sub.Close(); return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, other, func(t *testing.T, p *Peers) {
				link := &recorder{full: make(chan struct{})}
				sub := p.Subscribe(nodeB, subscription.Options{Topic: "mail", Worker: "w"}, link)
				time.Sleep(time.Minute)
				if link.note("", func() {}); len(link.tasks) != 0 {
					t.Fatalf("got %d tasks without room", len(link.tasks))
				}
				want := end(sub, link)
				time.Sleep(closeTimeout + time.Second)
				link.note("", func() {})
				if len(link.tasks) < want {
					t.Errorf("got %d tasks, want %d", len(link.tasks), want)
				}
				sub.Close()
				synctest.Wait()
			})
		})
	}
}

func TestSubscriptionEndsWhenTheOtherNodeDrains(t *testing.T) {
	other := &otherNode{play: func(s subscribeServer) error {
		for _, m := range []*ddqv1.SubscribeResponse{{Subscribed: &ddqv1.Subscribed{}}, {Drain: &ddqv1.Drain{GraceMs: 1000}}} {
			if err := s.Send(m); err != nil {
				return err
			}
		}
		for {
			if _, err := s.Recv(); err != nil {
				return nil
			}
		}
	}}
	bubble(t, other, func(t *testing.T, p *Peers) {
		link := &recorder{}
		p.Subscribe(nodeB, subscription.Options{Topic: "mail"}, link)
		synctest.Wait()
		if want := []string{"opened", "closed"}; !slices.Equal(link.events, want) || !errors.Is(link.err, errDraining) {
			t.Errorf("heard %v and %v", link.events, link.err)
		}
	})
}

func TestSilentNodeIsGivenUp(t *testing.T) {
	other := &otherNode{play: func(s subscribeServer) error {
		<-s.Context().Done()
		return s.Context().Err()
	}}
	bubble(t, other, func(t *testing.T, p *Peers) {
		link := &recorder{}
		p.Subscribe(nodeB, subscription.Options{Topic: "mail"}, link)
		time.Sleep(greetTimeout)
		synctest.Wait()
		if !slices.Equal(link.events, []string{"closed"}) || !errors.Is(link.err, errSilent) {
			t.Errorf("heard %v and %v", link.events, link.err)
		}
	})
}

func TestNoticesGoOutTogetherAndAgainAfterABreak(t *testing.T) {
	other := &otherNode{}
	bubble(t, other, func(t *testing.T, p *Peers) {
		shard := store.Shard{Topic: "mail", N: 2}
		for seq := range int64(3) {
			p.Notify(nodeB, fleet.Notice{Pending: []fleet.PendingNotice{{Shard: shard, Seq: seq, Tasks: []store.Entry{{ID: "a", Due: 7}}}}})
		}
		p.Notify(nodeB, fleet.Notice{
			Ended:    []fleet.EndedNotice{{Shard: shard, Holds: []fleet.EndedHold{{ID: "b", Token: store.Token{1}}}}},
			Released: []store.Shard{shard},
		})
		synctest.Wait()
		seqs, ended, released := 0, 0, 0
		for _, f := range other.notices {
			for _, n := range f.Pending {
				if n.Topic != "mail" || n.Shard != 2 || n.Seq != int64(seqs) || n.Ids[0] != "a" || n.DueUnixMs[0] != 7 {
					t.Errorf("notice %v", n)
				}
				seqs++
			}
			for _, n := range f.Ended {
				if n.Ids[0] != "b" || n.HoldTokens[0][0] != 1 || len(n.HoldTokens[0]) != 16 {
					t.Errorf("notice %v", n)
				}
				ended++
			}
			released += len(f.Released)
		}
		if seqs != 3 || ended != 1 || released != 1 {
			t.Errorf("%d, %d and %d notices came", seqs, ended, released)
		}
		other.cut <- struct{}{} // with nothing more to say
		time.Sleep(time.Second)
		synctest.Wait()
		if other.streams != 2 {
			t.Errorf("%d streams were opened, want a second one after the break", other.streams)
		}
	})
}

func TestTooManyNoticesAreDroppedAndSaid(t *testing.T) {
	q := newNotices(nil, slog.New(slog.DiscardHandler))
	many := fleet.Notice{Pending: []fleet.PendingNotice{{Tasks: make([]store.Entry, frameQueued)}}}
	for range 2 * maxQueued / frameQueued {
		q.add(&many)
	}
	if q.waiting > maxQueued || !q.lost() || q.lost() {
		t.Errorf("%d wait", q.waiting)
	}
	for _, f := range q.take() {
		if n := len(f.Pending[0].Ids); n > frameQueued {
			t.Errorf("a frame has %d tasks", n)
		}
	}
}

// otherPulse is that of a topic at the other node.
func otherPulse() *pulse.Report {
	p := pulse.New()
	p.Count(1_900_000_001_000, &pulse.Tally{pulse.Enqueued: 3, pulse.Dead: 1})
	p.Deliver(1_900_000_002_000, []store.Millis{0, 7, 7, 90_000})
	r := p.Report(1_900_000_060_000)
	return &r
}

func TestPulsesComeWithADescription(t *testing.T) {
	bubble(t, &otherNode{}, func(t *testing.T, p *Peers) {
		s, err := p.Describe(t.Context(), nodeB, fleet.StatusQuery{Pulses: []string{"mail"}})
		if err != nil || !s.PulsesIncomplete || len(s.Pulses) != 1 {
			t.Fatalf("got %+v, %v", s, err)
		}
		got, want := s.Pulses["mail"], otherPulse()
		for _, w := range [...][2]*pulse.Window{{&got.Minute, &want.Minute}, {&got.Hour, &want.Hour}} {
			if w[0].From != w[1].From || !reflect.DeepEqual(w[0].Counts, w[1].Counts) || !slices.Equal(w[0].Latest, w[1].Latest) || w[0].Max != w[1].Max {
				t.Errorf("got %+v, want %+v", w[0], w[1])
			}
			for _, percentile := range []float64{50, 99} {
				if at, is := w[0].LateAt(percentile), w[1].LateAt(percentile); at != is || w[0].Late.TotalCount() != w[1].Late.TotalCount() {
					t.Errorf("p%v is %d, want %d", percentile, at, is)
				}
			}
		}
	})
}

func TestWhatANodeLogsComesWithADescription(t *testing.T) {
	at := time.UnixMilli(1_900_000_000_000)
	for name, want := range map[string]*fleet.Logs{
		"a node of before": nil,
		"as configured":    {Level: slog.LevelInfo},
		"everything said":  {Level: slog.LevelWarn, Until: at.UTC(), Topics: []fleet.TopicLogs{{Topic: "mail", Until: at.UTC()}}},
		"nothing is":       {Level: slog.LevelError + 4},
	} {
		bubble(t, &otherNode{logs: wire.Logs(want)}, func(t *testing.T, p *Peers) {
			if s, err := p.Describe(t.Context(), nodeB, fleet.StatusQuery{}); err != nil || !reflect.DeepEqual(s.Logs, want) {
				t.Errorf("%s: %+v, %v, want %+v", name, s.Logs, err, want)
			}
		})
	}
}

func TestNodeIsDescribed(t *testing.T) {
	bubble(t, &otherNode{}, func(t *testing.T, p *Peers) {
		s, err := p.Describe(t.Context(), nodeB, fleet.StatusQuery{})
		want := fleet.OwnedShard{Shard: store.Shard{Topic: "mail", N: 3}, Epoch: 7, Wheel: 11, Ready: 1, Held: 2, Lateness: 9 * time.Millisecond}
		if err != nil || s.Node != "b" || s.Uptime != 5*time.Second || s.ClockOffset != -1500*time.Microsecond || len(s.Shards) != 1 || !reflect.DeepEqual(s.Shards[0], want) {
			t.Errorf("got %+v, %v", s, err)
		}
		want.DueSoon = fleet.DueSoon{From: 1000, Until: 3000, Counts: []int64{0, 4}}
		if s, err := p.Describe(t.Context(), nodeB, fleet.StatusQuery{DueSoon: true}); err != nil || len(s.Shards) != 1 || !reflect.DeepEqual(s.Shards[0], want) {
			t.Errorf("with what is due: %+v, %v", s, err)
		}
		var e *problem.Error
		if err := p.Drain(t.Context(), nodeB, true); !errors.As(err, &e) || e.Kind != problem.Precondition || e.Reason != "NODE_REFUSED" {
			t.Errorf("a node that knows no drain: %v", err)
		}
	})
}

// What another node refuses is refused here, too: repeating the call would not help.
func TestRefusalsOfAnotherNodeKeepTheirMeaning(t *testing.T) {
	refused := func(code codes.Code, details ...protoadapt.MessageV1) error {
		st, err := status.New(code, "no").WithDetails(details...)
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	field := &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "shard"}}}
	pause := &errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)}
	for _, tc := range []struct {
		name string
		err  error
		want problem.Error
	}{
		{"invalid", refused(codes.InvalidArgument, &errdetails.ErrorInfo{Reason: "OUT_OF_RANGE_FIELD"}, field),
			problem.Error{Kind: problem.Invalid, Reason: "OUT_OF_RANGE_FIELD", Field: "shard"}},
		{"not found", refused(codes.NotFound, &errdetails.ErrorInfo{Reason: "NO_TOPIC"}),
			problem.Error{Kind: problem.NotFound, Reason: "NO_TOPIC"}},
		{"precondition", refused(codes.FailedPrecondition, &errdetails.ErrorInfo{Reason: "NO_FLEET"}),
			problem.Error{Kind: problem.Precondition, Reason: "NO_FLEET"}},
		{"without a reason", refused(codes.NotFound), problem.Error{Kind: problem.NotFound, Reason: "NODE_REFUSED"}},
		{"store down", refused(codes.Unavailable, &errdetails.ErrorInfo{Reason: "STORE_DOWN"}, pause),
			problem.Error{Kind: problem.Unavailable, Reason: "NODE_UNREACHABLE", Field: "name", RetryAfter: 3 * time.Second}},
		{"broken", refused(codes.Unavailable), problem.Error{Kind: problem.Unavailable, Reason: "NODE_UNREACHABLE", Field: "name", RetryAfter: time.Second}},
	} {
		var e *problem.Error
		if !errors.As(failureOf(nodeB, tc.err), &e) || e.Kind != tc.want.Kind || e.Reason != tc.want.Reason ||
			e.Field != tc.want.Field || e.RetryAfter != tc.want.RetryAfter {
			t.Errorf("%s: got %+v, want %+v", tc.name, e, tc.want)
		}
	}
	for code, want := range map[codes.Code]error{codes.Canceled: context.Canceled, codes.DeadlineExceeded: context.DeadlineExceeded} {
		if err := failureOf(nodeB, refused(code)); !errors.Is(err, want) {
			t.Errorf("%v: got %v", code, err)
		}
	}
}

// A link hears of a failure by the time that Subscribe returns: nothing is left to
// wait for.
func TestLinkHearsAtOnceThatNoSubscriptionBegins(t *testing.T) {
	bubble(t, &otherNode{}, func(t *testing.T, p *Peers) {
		_ = p.Close()
		link := &recorder{}
		p.Subscribe(nodeB, subscription.Options{Topic: "mail"}, link)
		if !slices.Equal(link.events, []string{"closed"}) || !errors.Is(link.err, errClosed) {
			t.Errorf("heard %v and %v", link.events, link.err)
		}
	})
}

// A connection to a node that has left is closed once nothing goes over it.
func TestNodesThatLeftAreForgotten(t *testing.T) {
	other := &otherNode{play: func(s subscribeServer) error {
		if err := s.Send(&ddqv1.SubscribeResponse{Subscribed: &ddqv1.Subscribed{Node: "b"}}); err != nil {
			return err
		}
		for {
			if _, err := s.Recv(); err != nil {
				return nil
			}
		}
	}}
	bubble(t, other, func(t *testing.T, p *Peers) {
		known := func() int {
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.nodes)
		}
		p.Notify(nodeB, fleet.Notice{Released: []store.Shard{{Topic: "mail"}}})
		p.Keep([]fleet.Member{nodeB})
		if n := known(); n != 1 {
			t.Fatalf("%d nodes are known, want one", n)
		}
		link := &recorder{}
		sub := p.Subscribe(nodeB, subscription.Options{Topic: "mail"}, link)
		p.Keep(nil)
		if n := known(); n != 1 || !slices.Equal(link.events, []string{"opened"}) {
			t.Fatalf("%d nodes are known with a subscription, which heard %v", n, link.events)
		}
		sub.Close()
		if n := known(); n != 0 {
			t.Errorf("%d nodes are known, want none", n)
		}
		p.Notify(nodeB, fleet.Notice{Released: []store.Shard{{Topic: "mail"}}})
		p.Keep(nil)
		if n := known(); n != 0 {
			t.Errorf("%d nodes are known, want none", n)
		}
		if s, err := p.Describe(t.Context(), nodeB, fleet.StatusQuery{}); err != nil || s.Node != "b" {
			t.Errorf("a node that is back: %+v, %v", s, err)
		}
	})
}

func TestANodeIsAskedForItsWorkers(t *testing.T) {
	bubble(t, &otherNode{}, func(t *testing.T, p *Peers) {
		got, err := p.Workers(t.Context(), nodeB, fleet.WorkersQuery{Topic: "sms", After: fleet.WorkerKey{Topic: "mail", Number: 40}, Most: 2})
		want := []fleet.Worker{
			{WorkerKey: fleet.WorkerKey{Topic: "sms", Number: 42}, Name: "mail", Since: 9, InFlight: 1, Credit: 2, MaxInFlight: 3, Client: "py"},
			{},
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestANodeIsAskedForItsAuditLog(t *testing.T) {
	bubble(t, &otherNode{}, func(t *testing.T, p *Peers) {
		filter := fleet.AuditFilter{Caller: "ops", Method: "DeleteTopic", Resource: "mail", Outcome: fleet.AuditFailed, From: time.UnixMilli(7), Before: time.UnixMilli(8)}
		got, err := p.Audit(t.Context(), nodeB, fleet.AuditQuery{AuditFilter: filter, Until: 42, Most: 2, Bytes: 3})
		if err != nil || got.None || got.End != 42 || got.Next != 5 || !got.Reached.Equal(time.UnixMicro(1_000_001)) || len(got.Lines) != 2 {
			t.Fatalf("got %+v, %v", got, err)
		}
		asked := (&ddqv1.ListAuditRecordsRequest{
			Caller: "ops", Method: "DeleteTopic", Resource: "mail", Outcome: ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED, FromUnixMs: 7, BeforeUnixMs: 8,
		}).String()
		if l := got.Lines[0]; string(l.Text) != asked || l.At != 5 || !l.Time.Equal(time.UnixMicro(2_000_002)) || !l.Altered {
			t.Errorf("a line is %s at %d of %v, asked for was %s", l.Text, l.At, l.Time, asked)
		}
		if got, err := p.Audit(t.Context(), nodeB, fleet.AuditQuery{}); err != nil || !got.None {
			t.Errorf("no log: %+v, %v", got, err)
		}
		var e *problem.Error
		if _, err := p.Audit(t.Context(), nodeB, fleet.AuditQuery{Until: 13}); !errors.As(err, &e) || e.Reason != "BAD_CURSOR" {
			t.Errorf("refused: %v", err)
		}
		chain, err := p.VerifyAudit(t.Context(), nodeB)
		want := fleet.AuditChain{State: fleet.AuditBroken, Records: 3, Head: "h", Fault: "line 4", Checked: time.Unix(9, 0).UTC()}
		if err != nil || chain != want {
			t.Errorf("got %+v, %v", chain, err)
		}
	})
}
