package peer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// awayBubble is bubble with a node that cannot be reached while away is set.
func awayBubble(t *testing.T, other *otherNode, test func(t *testing.T, p *Peers, away *atomic.Bool)) {
	synctest.Test(t, func(t *testing.T) {
		other.cut = make(chan struct{}, 1)
		lis := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto), pings)
		ddqv1.RegisterDelayQueueServiceServer(server, other)
		ddqv1.RegisterPeerServiceServer(server, other)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(lis) })
		var away atomic.Bool
		away.Store(true)
		p := New(Config{DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				if away.Load() {
					return nil, errors.New("connection refused")
				}
				return lis.DialContext(ctx)
			}),
		}}, slog.New(slog.DiscardHandler))
		defer func() {
			_ = p.Close()
			server.Stop()
			serving.Wait()
		}()
		test(t, p, &away)
	})
}

// A node that was away for long is reached within seconds of its return.
func TestNodeThatComesBackIsReachedSoon(t *testing.T) {
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
	awayBubble(t, other, func(t *testing.T, p *Peers, away *atomic.Bool) {
		try := func() (opened bool) {
			link := &recorder{}
			sub := p.Subscribe(nodeB, subscription.Options{Topic: "mail"}, link)
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			link.mu.Lock()
			opened = slices.Contains(link.events, "opened")
			link.mu.Unlock()
			sub.Close()
			synctest.Wait()
			return opened
		}
		for gone := time.Now(); time.Since(gone) < 10*time.Minute; {
			if try() {
				t.Fatal("subscribed at a node that is away")
			}
		}
		away.Store(false)
		back := time.Now()
		for !try() {
		}
		if took := time.Since(back); took > 5*time.Second {
			t.Errorf("reached %v after it came back", took)
		}
	})
}

// A notice for a node that cannot be reached for a moment needs no other one to
// get there.
func TestNoticeForANodeThatIsStartingArrives(t *testing.T) {
	other := &otherNode{}
	awayBubble(t, other, func(t *testing.T, p *Peers, away *atomic.Bool) {
		p.Notify(nodeB, fleet.Notice{Released: []store.Shard{{Topic: "mail", N: 2}}})
		time.Sleep(time.Second)
		away.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		other.mu.Lock()
		defer other.mu.Unlock()
		if len(other.notices) != 1 {
			t.Errorf("%d frames came within 10 s, want 1", len(other.notices))
		}
	})
}

// Topics may allow payloads over gRPC's default limit of 4 MiB.
func TestLargeTaskComesOver(t *testing.T) {
	other := &otherNode{play: func(s subscribeServer) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&ddqv1.SubscribeResponse{Subscribed: &ddqv1.Subscribed{Node: "b"}}); err != nil {
			return err
		}
		if err := s.Send(&ddqv1.SubscribeResponse{Deliveries: []*ddqv1.Delivery{
			{Task: &ddqv1.Task{Id: "a", Payload: make([]byte, 5<<20)}, HoldToken: []byte("t"), HoldMs: 1500},
		}}); err != nil {
			return err
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			return errors.New("no goodbye")
		}
		return nil
	}}
	bubble(t, other, func(t *testing.T, p *Peers) {
		link := &recorder{}
		sub := p.Subscribe(nodeB, subscription.Options{Topic: "mail"}, link)
		time.Sleep(time.Second)
		synctest.Wait()
		sub.Close()
		synctest.Wait()
		if len(link.tasks) != 1 || link.err != nil {
			t.Errorf("%d tasks came, then %v", len(link.tasks), link.err)
		}
	})
}

// What waits for a node that stays away is dropped, so that it takes up no memory.
func TestNoticesForANodeThatStaysAwayAreDropped(t *testing.T) {
	awayBubble(t, &otherNode{}, func(t *testing.T, p *Peers, _ *atomic.Bool) {
		p.Notify(nodeB, fleet.Notice{Released: []store.Shard{{Topic: "mail", N: 2}}})
		time.Sleep(2 * reopenFor)
		synctest.Wait()
		n, err := p.node(nodeB)
		if err != nil {
			t.Fatal(err)
		}
		n.notices.mu.Lock()
		defer n.notices.mu.Unlock()
		if n.notices.waiting != 0 || n.notices.frames != nil {
			t.Errorf("%d still wait", n.notices.waiting)
		}
	})
}
