package worker

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// fakeFleet are fake servers that name each other as nodes, and a worker with Direct
// whose own connection leads to the first.
type fakeFleet struct {
	*testing.T
	nodes []*fakeServer
	lists []*bufconn.Listener

	mu  sync.Mutex
	out map[string]bool // of reach at its own address; guarded by mu
	has []string        // the names of the nodes that there are; guarded by mu
}

// fakeAdmin says who is in the fleet.
type fakeAdmin struct {
	ddqv1.UnimplementedAdminServiceServer
	f *fakeFleet
}

func (a fakeAdmin) ListNodes(context.Context, *ddqv1.ListNodesRequest) (*ddqv1.ListNodesResponse, error) {
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	reply := &ddqv1.ListNodesResponse{}
	for _, name := range a.f.has {
		reply.Nodes = append(reply.Nodes, &ddqv1.Node{Name: name, Addr: "passthrough:///" + name, State: ddqv1.NodeState_NODE_STATE_ACTIVE})
	}
	return reply, nil
}

// startDirect runs a worker with Direct at nodes of these names until the test ends.
func startDirect(t *testing.T, cfg Config, h Handler, names ...string) *fakeFleet {
	t.Helper()
	f := &fakeFleet{T: t, out: make(map[string]bool), has: names}
	f.start(cfg, h, names...)
	return f
}

// start is startDirect for a fleet that is not as its names say from the beginning.
func (f *fakeFleet) start(cfg Config, h Handler, names ...string) {
	t := f.T
	t.Helper()
	var serving sync.WaitGroup
	for _, name := range names {
		n := &fakeServer{t: t, node: name, streams: make(chan *fakeStream, 100), nacks: make(chan *ddqv1.Nack, 100)}
		lis := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
		ddqv1.RegisterDelayQueueServiceServer(server, n)
		ddqv1.RegisterAdminServiceServer(server, fakeAdmin{f: f})
		serving.Go(func() { _ = server.Serve(lis) })
		t.Cleanup(server.Stop)
		f.nodes, f.lists = append(f.nodes, n), append(f.lists, lis)
	}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	own, err := grpc.NewClient("passthrough:///own", plain, grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) { return f.lists[0].DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Topic, cfg.Direct, cfg.DialOptions = "mail", true, []grpc.DialOption{plain, grpc.WithContextDialer(f.dial)}
	w := New(own, cfg, h)
	ctx, cancel := context.WithCancel(context.Background())
	serving.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run returned %v", err)
		}
		_ = own.Close()
		for _, lis := range f.lists {
			_ = lis.Close()
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(cancel)
}

func (f *fakeFleet) dial(ctx context.Context, name string) (net.Conn, error) {
	f.mu.Lock()
	i, out := slices.IndexFunc(f.nodes, func(n *fakeServer) bool { return n.node == name }), f.out[name]
	f.mu.Unlock()
	if out {
		return nil, status.Error(codes.Unavailable, "out of reach")
	}
	return f.lists[i].DialContext(ctx)
}

// back puts a node within reach.
func (f *fakeFleet) back(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.out, name)
}

func (f *fakeFleet) members(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.has = names
}

// open counts the sessions that are open, by node; those that take from all nodes
// are at "*".
func (f *fakeFleet) open() map[string]int {
	synctest.Wait()
	open := make(map[string]int)
	for _, n := range f.nodes {
		for name, count := range n.open() {
			open[name] += count
		}
	}
	return open
}

func (f *fakeFleet) expect(what string, want map[string]int) {
	f.Helper()
	if got := f.open(); !maps.Equal(got, want) {
		f.Errorf("%s: sessions %v, want %v", what, got, want)
	}
}

// at returns the worker's next session on demand at a node.
func (f *fakeFleet) at(node int) *fakeStream {
	for st := range f.nodes[node].streams {
		if st.hello.GetOnDemand() {
			return st
		}
	}
	return nil
}

func TestDirectIsAtEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startDirect(t, Config{}, HandlerFunc(ok), "n0", "n1", "n2")
		time.Sleep(time.Second)
		f.expect("at first", map[string]int{"n0": 1, "n1": 1, "n2": 1})
		for i := range f.nodes {
			st, id := f.at(i), f.nodes[i].node+"-task"
			st.send(&ddqv1.SubscribeResponse{Demand: &ddqv1.Demand{Ready: 1}})
			synctest.Wait()
			if credit, _, _, _, _ := st.books(); credit != 1 {
				t.Fatalf("credit %d for the task that is ready at node %d", credit, i)
			}
			st.deliver(id)
			time.Sleep(time.Second)
			if _, _, acked, _, _ := st.books(); !slices.Equal(acked, []string{id}) {
				t.Errorf("node %d has acks of %v", i, acked)
			}
		}
	})
}

// Nodes that all have more than the worker can take get a share of its room each,
// and all together no more than it has.
func TestDirectSharesItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := startDirect(t, Config{MaxInFlight: 30, Concurrency: 30}, HandlerFunc(func(context.Context, Task) error {
			<-release
			return nil
		}), "n0", "n1", "n2")
		time.Sleep(time.Second)
		var streams []*fakeStream
		for i := range f.nodes {
			st := f.at(i)
			streams = append(streams, st)
			st.send(&ddqv1.SubscribeResponse{Demand: &ddqv1.Demand{Ready: 1000}})
			synctest.Wait()
		}
		total := 0
		for _, st := range streams {
			credit, _, _, _, _ := st.books()
			total += credit
		}
		if total != 30 {
			t.Errorf("%d granted in all, of 30", total)
		}
		first, _, _, _, _ := streams[0].books()
		streams[0].deliver(ids(0, first)...)
		synctest.Wait()
		close(release)
		time.Sleep(time.Second)
		for i, st := range streams {
			if credit, _, _, _, _ := st.books(); credit == 0 {
				t.Errorf("node %d has no share of the room that came", i)
			}
		}
	})
}

func TestDirectGoesRoundANodeOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{T: t, out: map[string]bool{"n2": true}, has: []string{"n0", "n1", "n2"}}
		f.start(Config{}, HandlerFunc(ok), "n0", "n1", "n2")
		time.Sleep(detourAfter + lookEvery)
		f.expect("n2 cannot be reached", map[string]int{"n0": 1, "n1": 1, "*": 1})
		f.back("n2")
		time.Sleep(4 * lookEvery)
		f.expect("n2 is back", map[string]int{"n0": 1, "n1": 1, "n2": 1})
	})
}

func TestDirectFollowsTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFleet{T: t, out: make(map[string]bool), has: []string{"n0", "n1"}}
		f.start(Config{}, HandlerFunc(ok), "n0", "n1", "n2")
		time.Sleep(time.Second)
		f.expect("two nodes", map[string]int{"n0": 1, "n1": 1})
		f.members("n0", "n1", "n2")
		f.at(0).send(&ddqv1.SubscribeResponse{NodesChanged: true})
		time.Sleep(time.Second)
		f.expect("a third one came", map[string]int{"n0": 1, "n1": 1, "n2": 1})
		f.members("n0")
		time.Sleep(forgetAfter + 3*lookEvery)
		f.expect("one that stands alone", map[string]int{"*": 1})
	})
}
