package client

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/port"
)

// fleetNode is one of several servers, on loopback.
type fleetNode struct {
	*fakeServer
	addr    string
	health  *health.Server
	server  *grpc.Server
	serving sync.WaitGroup
}

func startNode(t *testing.T, addr string) *fleetNode {
	t.Helper()
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	n := &fleetNode{
		fakeServer: &fakeServer{},
		addr:       lis.Addr().String(),
		health:     health.NewServer(),
		server:     grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto)),
	}
	ddqv1.RegisterDelayQueueServiceServer(n.server, n)
	healthpb.RegisterHealthServer(n.server, n.health)
	n.serving.Go(func() { _ = n.server.Serve(lis) })
	t.Cleanup(n.stop)
	return n
}

func (n *fleetNode) stop() {
	n.server.Stop()
	n.serving.Wait()
}

// took is how many frames the node answered.
func (n *fleetNode) took() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.frames)
}

func dialFleet(t *testing.T, nodes ...*fleetNode) *Client {
	t.Helper()
	addr := ""
	for _, n := range nodes {
		addr += n.addr + ","
	}
	c, err := Dial(addr[:len(addr)-1], Config{Timeout: time.Minute, MaxElapsed: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // of servers that may be gone
	return c
}

func enqueueSome(t *testing.T, c *Client, prefix string) {
	t.Helper()
	for i := range 20 {
		id := fmt.Sprint(prefix, i)
		if r, err := c.Enqueue(t.Context(), Task{Topic: "mail", ID: id}); err != nil || r.ID != id {
			t.Fatalf("%s: %v, %v", id, r, err)
		}
	}
}

func TestClientGoesOnAtAnotherNode(t *testing.T) {
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	a, b := startNode(t, claim.Addr()), startNode(t, "127.0.0.1:0")
	c := dialFleet(t, a, b)
	enqueueSome(t, c, "both")
	a.stop()
	enqueueSome(t, c, "one is down")
	before := b.took()
	again := startNode(t, a.addr)
	b.stop()
	enqueueSome(t, c, "the other is down")
	if before == 0 || again.took() == 0 {
		t.Errorf("b took %d frames, and a %d after its return", before, again.took())
	}
}

func TestClientLeavesADrainingNode(t *testing.T) {
	a, b := startNode(t, "127.0.0.1:0"), startNode(t, "127.0.0.1:0")
	a.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	c := dialFleet(t, a, b)
	enqueueSome(t, c, "t")
	if a.took() > 0 || b.took() == 0 {
		t.Errorf("the draining node took %d frames, the other %d", a.took(), b.took())
	}
}

// A node that has lost its store answers all the same. Neither is its stream the
// place to try again, nor the time that it names the one to wait for.
func TestClientLeavesANodeWithoutAStore(t *testing.T) {
	a, b := startNode(t, "127.0.0.1:0"), startNode(t, "127.0.0.1:0")
	c := dialFleet(t, a, b)
	enqueueSome(t, c, "before")
	down := func(*ddqv1.EnqueueRequest) *ddqv1.Error {
		return &ddqv1.Error{Code: int32(codes.Unavailable), Reason: "STORE_DOWN", RetryAfterMs: time.Hour.Milliseconds()}
	}
	for _, n := range []*fleetNode{a, b} {
		n.mu.Lock()
		n.judge = down
		n.mu.Unlock()
		n.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		enqueueSome(t, c, n.addr)
		n.mu.Lock()
		n.judge = nil
		n.mu.Unlock()
		n.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	}
}

func TestBadAddressListIsRefused(t *testing.T) {
	if _, err := Dial("127.0.0.1:1,,127.0.0.1:2", Config{}); err == nil {
		t.Error("accepted")
	}
}

func TestEveryNodeDownEndsWithTheDeadline(t *testing.T) {
	c, err := Dial("127.0.0.1:1,127.0.0.1:2", Config{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Enqueue(t.Context(), Task{Topic: "mail"}); err == nil {
		t.Error("a task was enqueued nowhere")
	}
}
