package stand

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Relay passes connections on to a server, and loses or delays what it answers when told
// to. It owns a goroutine that accepts and two for each connection; all are gone once
// close returns.
type Relay struct {
	net.Listener
	to     string
	losing atomic.Bool
	delay  atomic.Int64 // the most, in nanoseconds
	wait   sync.WaitGroup
	stop   context.CancelFunc
}

// newRelay listens at the host of a server, which need not be there yet.
func newRelay(to string) (*Relay, error) {
	host, _, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Relay{Listener: l, to: to, stop: stop}
	r.wait.Go(func() { r.accept(ctx) })
	return r, nil
}

func (r *Relay) accept(ctx context.Context) {
	for {
		from, err := r.Accept()
		if err != nil {
			return // closed
		}
		r.wait.Go(func() { r.pass(ctx, from) })
	}
}

// pass carries one connection until either side ends it, or ctx does.
func (r *Relay) pass(ctx context.Context, from net.Conn) {
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
func (r *Relay) close() error {
	if r == nil {
		return nil
	}
	r.stop()
	err := r.Listener.Close()
	r.wait.Wait()
	return err
}

// Lose says whether answers are lost, each with its connection.
func (r *Relay) Lose(so bool) { r.losing.Store(so) }

// Slow says by how much answers are late, at most.
func (r *Relay) Slow(by time.Duration) { r.delay.Store(int64(by)) }
