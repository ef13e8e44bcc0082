package faults

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// wireFaults are those of the connections to Redis, which go through a relay.
func wireFaults() []Fault {
	on, tune := []string{redisEverysec}, func(s *setting) { s.relayed = true }
	return []Fault{
		{
			Name: "lost-replies", What: "for a while Redis does what it is asked, and the connection breaks instead of an answer",
			Stores: on, strike: loseReplies, tune: tune,
			Cost: "calls are repeated; they take longer, or end unknown and may have been done",
		},
		{
			Name: "late-replies", What: "what Redis answers takes up to 100 ms more, so that answers overtake each other, while a node is drained and undrained",
			Stores: on, Nodes: 2, strike: delayReplies, tune: tune,
			Cost: "each step of a task takes as much longer",
		},
	}
}

func loseReplies(ctx context.Context, r *round) error {
	return r.broken(ctx, "lose what redis answers", func() error {
		r.relay.losing.Store(true)
		if err := r.pause(ctx, 50*time.Millisecond, 500*time.Millisecond); err != nil {
			return err
		}
		r.relay.losing.Store(false)
		return r.awaitWhole(ctx)
	})
}

func delayReplies(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "delay what redis answers, and drain "+nd.name, func() error {
		r.relay.delay.Store(int64(100 * time.Millisecond))
		defer r.relay.delay.Store(0)
		if err := nd.ask(func(c *client.Client) error { return c.DrainNode(ctx, nd.name) }); err != nil {
			return err
		}
		if err := r.pause(ctx, time.Second, 2*time.Second); err != nil {
			return err
		}
		if err := nd.ask(func(c *client.Client) error { return c.UndrainNode(ctx, nd.name) }); err != nil {
			return err
		}
		if err := r.pause(ctx, time.Second, 2*time.Second); err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

// relay passes connections on to a server, and loses or delays what it answers when told
// to. It owns a goroutine that accepts and two for each connection; all are gone once
// close returns.
type relay struct {
	net.Listener
	to     string
	losing atomic.Bool
	delay  atomic.Int64 // the most, in nanoseconds
	wait   sync.WaitGroup
	stop   context.CancelFunc
}

// newRelay listens at a host, for a server that need not be there yet.
func newRelay(host, to string) (*relay, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &relay{Listener: l, to: to, stop: stop}
	r.wait.Go(func() { r.accept(ctx) })
	return r, nil
}

func (r *relay) accept(ctx context.Context) {
	for {
		from, err := r.Accept()
		if err != nil {
			return // closed
		}
		r.wait.Go(func() { r.pass(ctx, from) })
	}
}

// pass carries one connection until either side ends it, or ctx does.
func (r *relay) pass(ctx context.Context, from net.Conn) {
	defer from.Close()
	var d net.Dialer
	to, err := d.DialContext(ctx, "tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { _ = to.Close() })()
	r.wait.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := to.Read(buf)
		if err != nil || r.losing.Load() {
			return
		}
		if most := r.delay.Load(); most > 0 {
			time.Sleep(rand.N(time.Duration(most)))
		}
		if _, err := from.Write(buf[:n]); err != nil {
			return
		}
	}
}

// close ends every connection.
func (r *relay) close() error {
	if r == nil {
		return nil
	}
	r.stop()
	err := r.Listener.Close()
	r.wait.Wait()
	return err
}
