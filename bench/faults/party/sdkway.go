package party

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// lostShare is how many of the answers that a worker gets are lost, one of so many, and one of the first firstLost.
	lostShare, firstLost = 40, 8
	// dialing is how long a node may take to take a connection, before another one is asked.
	dialing = time.Second
)

// way leads to the nodes: to one after the other, and past those that take no connection.
type way struct {
	addrs []string
	turn  atomic.Uint64
}

func (y *way) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialing}
	var all error
	for range y.addrs {
		conn, err := d.DialContext(ctx, network, y.addrs[y.turn.Add(1)%uint64(len(y.addrs))])
		if err == nil {
			return conn, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// loses reports whether the next answer is lost.
func (s *sdk) loses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passes--; s.passes > 0 {
		return false
	}
	s.passes = s.rand.IntN(2 * lostShare)
	return true
}

func (s *sdk) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// fails answers a request that came to nothing, as what lies between does: not at all, with an
// error of its own, or for settlements, which are soon asked for again, never.
func (s *sdk) fails(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case !errors.Is(err, tap.ErrLost) && r.Context().Err() == nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	case errors.Is(err, tap.ErrLost):
		ways := 2
		if tap.Settles(r) {
			ways = 3
		}
		switch s.draw(ways) {
		case 0:
			http.Error(w, "nobody knows what became of it", http.StatusBadGateway)
			return
		case 2:
			<-r.Context().Done()
		}
	}
	panic(http.ErrAbortHandler)
}
