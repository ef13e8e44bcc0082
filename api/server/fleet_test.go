package server

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

func TestANodeThatStandsAloneIsAFleetOfOne(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("t", &ddqv1.TopicPolicy{Shards: proto.Int32(3)})(r))
		r.hold("t", "a")
		synctest.Wait() // the other shards are claimed, too
		nodes, err := r.admin.ListNodes(r.Context(), &ddqv1.ListNodesRequest{})
		must(r, err)
		if len(nodes.Nodes) != 1 {
			r.Fatalf("got %v", nodes)
		}
		self := nodes.Nodes[0]
		if !self.Self || self.State != ddqv1.NodeState_NODE_STATE_ACTIVE || self.Load.GetShards() != 3 || self.Load.GetHeld() != 1 {
			r.Errorf("got %v", self)
		}
		peer, err := ddqv1.NewPeerServiceClient(r.conn).DescribePeer(r.Context(), &ddqv1.DescribePeerRequest{})
		if err != nil || peer.Node != self.Name || len(peer.Shards) != 3 || peer.Shards[0].Epoch == 0 {
			r.Errorf("described as %v, %v", peer, err)
		}
		var seen []int32
		for token := "?"; token != ""; {
			if token == "?" {
				token = ""
			}
			page, err := r.admin.ListShards(r.Context(), &ddqv1.ListShardsRequest{Topic: "t", PageSize: 2, PageToken: token})
			must(r, err)
			for _, s := range page.Shards {
				seen = append(seen, s.Shard)
				if s.Topic != "t" || s.Owner != self.Name || s.PlacedOn != self.Name || s.Epoch == 0 || s.Load == nil {
					r.Errorf("shard %v", s)
				}
			}
			token = page.NextPageToken
		}
		if len(seen) != 3 || seen[0] != 0 || seen[2] != 2 {
			r.Errorf("listed shards %v", seen)
		}
		plan, err := r.admin.PlanRebalance(r.Context(), &ddqv1.PlanRebalanceRequest{})
		if err != nil || len(plan.Moves) != 0 {
			r.Errorf("planned %v, %v", plan, err)
		}
	})
}

func TestNoticesAreReadFromTheWire(t *testing.T) {
	token := store.Token{1, 2, 3}
	n := noticeOf(&ddqv1.NotifyRequest{
		Pending: []*ddqv1.PendingNotice{
			{Topic: "t", Shard: 1, Seq: 9, Ids: []string{"a", "b"}, DueUnixMs: []int64{5, 6}},
			{Topic: "t", Ids: []string{"a"}}, // without its due time
		},
		Ended: []*ddqv1.EndedNotice{{
			Topic: "t", Shard: 2, Ids: []string{"short", "c", "missing"}, HoldTokens: [][]byte{{1}, token[:]},
		}},
		Released: []*ddqv1.ReleasedNotice{{Topic: "u", Shard: 3}},
	})
	if len(n.Pending) != 1 || n.Pending[0].Shard != (store.Shard{Topic: "t", N: 1}) || n.Pending[0].Seq != 9 ||
		len(n.Pending[0].Tasks) != 2 || n.Pending[0].Tasks[1] != (store.Entry{ID: "b", Due: 6}) {
		t.Errorf("pending %+v", n.Pending)
	}
	if len(n.Ended) != 1 || len(n.Ended[0].Holds) != 1 || n.Ended[0].Holds[0] != (fleet.EndedHold{ID: "c", Token: token}) {
		t.Errorf("ended %+v", n.Ended)
	}
	if len(n.Released) != 1 || n.Released[0] != (store.Shard{Topic: "u", N: 3}) {
		t.Errorf("released %+v", n.Released)
	}
}

// Notices about what is not there are for nobody, and the stream goes on.
func TestNoticesOfUnknownShardsAreIgnored(t *testing.T) {
	fleetBubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		stream, err := ddqv1.NewPeerServiceClient(r.conn).Notify(r.Context())
		must(r, err)
		for _, shard := range []int32{-1, 1 << 30} {
			must(r, stream.Send(&ddqv1.NotifyRequest{
				Pending:  []*ddqv1.PendingNotice{{Topic: "t", Shard: shard, Ids: []string{"a"}, DueUnixMs: []int64{1}}, {Topic: "no such"}},
				Ended:    []*ddqv1.EndedNotice{{Topic: "t", Shard: shard}},
				Released: []*ddqv1.ReleasedNotice{{Topic: "t", Shard: shard}},
			}))
		}
		if _, err := stream.CloseAndRecv(); err != nil {
			r.Errorf("ended with %v", err)
		}
	})
}

func TestNoticesEndWhenTheNodeDrains(t *testing.T) {
	fleetBubble(t, Config{}, func(r *rig) {
		stream, err := ddqv1.NewPeerServiceClient(r.conn).Notify(r.Context())
		must(r, err)
		must(r, stream.Send(&ddqv1.NotifyRequest{}))
		stopped := r.stopping(time.Minute)
		if got := statustest.Look(r.T, stream.RecvMsg(new(ddqv1.NotifyResponse))); got.Code != codes.Unavailable || got.Reason != "DRAINING" {
			r.Errorf("ended with %+v", got)
		}
		if _, err := stopped(); err != nil {
			r.Error(err)
		}
	})
}

// A stream of another node is no worker.
func TestWorkersAreListed(t *testing.T) {
	fleetBubble(t, Config{}, func(r *rig) {
		must(r, created("t", &ddqv1.TopicPolicy{Shards: proto.Int32(1)})(r))
		r.subscribeOnDemand()
		since := r.service.Node().Clock().Millis()
		s := r.open()
		s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", Worker: "mailer", MaxInFlight: 7, LocalShardsOnly: true}, Credit: proto.Int32(3)})
		s.next()
		synctest.Wait()
		list, err := r.admin.ListWorkers(r.Context(), &ddqv1.ListWorkersRequest{})
		must(r, err)
		if !slices.Equal(list.SilentNodes, []string{"b"}) || len(list.Workers) != 1 {
			r.Fatalf("listed %v", list)
		}
		want := &ddqv1.Worker{Name: "mailer", Topic: "t", Node: "a", SinceUnixMs: int64(since), Credit: 3, MaxInFlight: 7, Client: list.Workers[0].Client}
		if got := list.Workers[0]; !proto.Equal(got, want) || !strings.HasPrefix(got.Client, "grpc-go/") {
			r.Errorf("got %v, want %v", got, want)
		}
		peer, err := ddqv1.NewPeerServiceClient(r.conn).ListPeerWorkers(r.Context(), &ddqv1.ListPeerWorkersRequest{Most: 10})
		must(r, err)
		want.Node = ""
		if len(peer.Workers) != 1 || peer.Workers[0].Number == 0 || !proto.Equal(peer.Workers[0].Worker, want) {
			r.Fatalf("the node lists %v", peer)
		}
		for what, ask := range map[string]*ddqv1.ListPeerWorkersRequest{
			"behind it":        {AfterTopic: "t", AfterNumber: peer.Workers[0].Number, Most: 10},
			"of another topic": {Topic: "u", Most: 10},
			"none":             {Most: -1},
		} {
			if peer, err := ddqv1.NewPeerServiceClient(r.conn).ListPeerWorkers(r.Context(), ask); err != nil || len(peer.Workers) != 0 {
				r.Errorf("%s: %v, %v", what, peer, err)
			}
		}
	})
}

func TestTheOverviewIsOneCall(t *testing.T) {
	fleetBubble(t, Config{}, func(r *rig) {
		must(r, created("t", &ddqv1.TopicPolicy{Shards: proto.Int32(3)})(r))
		must(r, created("u", nil)(r))
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(20500 * time.Millisecond)}})
		synctest.Wait()
		v, err := r.admin.GetOverview(r.Context(), &ddqv1.GetOverviewRequest{PageSize: 1})
		must(r, err)
		if v.Server.GetNode() != "a" || len(v.Nodes) != 2 || !slices.Equal(v.SilentNodes, []string{"b"}) || len(v.Topics) != 1 || v.NextPageToken == "" {
			r.Fatalf("got %v", v)
		}
		got := v.Topics[0]
		if got.Topic.GetName() != "t" || got.Depth.GetScheduled() != 1 || len(got.Due) != 60 || got.Due[20] != 1 || v.DueFromUnixMs%1000 != 0 {
			r.Errorf("got %v", got)
		}
		if v, err = r.admin.GetOverview(r.Context(), &ddqv1.GetOverviewRequest{PageSize: 1, PageToken: v.NextPageToken}); err != nil || len(v.Topics) != 1 || v.Topics[0].Topic.GetName() != "u" || v.NextPageToken != "" {
			r.Errorf("the second page is %v, %v", v, err)
		}
		for _, bad := range []*ddqv1.GetOverviewRequest{{PageSize: -1}, {PageToken: "x"}} {
			if _, err := r.admin.GetOverview(r.Context(), bad); statustest.Look(r.T, err).Code != codes.InvalidArgument {
				r.Errorf("%v: %v", bad, err)
			}
		}
	})
}

// TestTheOverviewIsWatched by one who sees what has happened, until the server goes away.
func TestTheOverviewIsWatched(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "b"})
		time.Sleep(2 * time.Second)
		got, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", Worker: "w", MaxTasks: 2})
		must(r, err)
		_, err = r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "t", Ack: &ddqv1.Ack{TaskId: got.Deliveries[0].Task.Id, HoldToken: got.Deliveries[0].HoldToken}})
		must(r, err)
		stream, err := r.admin.WatchOverview(r.Context(), &ddqv1.WatchOverviewRequest{Topic: "t"})
		must(r, err)
		began := time.Now()
		var last *ddqv1.TopicOverview
		for range 8 {
			v, err := stream.Recv()
			must(r, err)
			last = v.Overview.Topics[0]
		}
		if took := time.Since(began); took < 6900*time.Millisecond || took > 7100*time.Millisecond {
			r.Errorf("eight of them came within %v", took)
		}
		w, sum := last.GetPulse().GetMinute(), func(series []int64) (n int64) {
			for _, k := range series {
				n += k
			}
			return n
		}
		if len(w.GetDelivered()) != 12 || sum(w.Delivered) != 2 || sum(w.Enqueued) != 2 || sum(w.Acked) != 1 || len(w.Failed) != 0 || w.StepMs != 5000 || w.Steps != 12 {
			r.Errorf("got %v", w)
		}
		if late := w.GetLateness(); late.GetP50Ms() < 1900 || late.GetMaxMs() > 2100 || w.GetPerSecond().GetDelivered() != 2.0/60 {
			r.Errorf("late %v, %v", late, w.GetPerSecond())
		}
		for _, bad := range []*ddqv1.WatchOverviewRequest{{PageSize: -1}, {PageToken: "x"}} {
			refused, err := r.admin.WatchOverview(r.Context(), bad)
			must(r, err)
			if _, err := refused.Recv(); statustest.Look(r.T, err).Code != codes.InvalidArgument {
				r.Errorf("%v: %v", bad, err)
			}
		}
		go func() { _ = r.server.Stop(r.Context()) }()
		for err == nil {
			_, err = stream.Recv()
		}
		if statustest.Look(r.T, err).Code != codes.Unavailable {
			r.Errorf("it ended with %v", err)
		}
	})
}
