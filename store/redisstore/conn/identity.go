package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// identities knows which process each server is that some clients are connected to, by its
// address: one that was restarted, or took over, is another, and may not have what was answered
// before. Every new connection asks, so nothing is asked while the servers stay. Clients that
// come to another server by themselves have identities of their own: what one knows of says
// nothing of where the other still is. It is safe for concurrent use.
//
// Invariant: once the server at an address is known to be another one, nothing reaches the former
// one any more. Sentinels, names and balancers come to name another while connections to the former
// are open, which goes on to answer for up to ten seconds, with what is lost; so all
// connections are closed then. An address behind which several processes answer at a time has to do
// without: each connection would close the others.
type identities struct {
	log     *slog.Logger
	changes atomic.Uint64

	mu sync.Mutex
	by map[string]*server // guarded by mu; one that sentinels name has the address ""
}

// server is the process at an address, as clients have come to it: one that they left and came back
// to has another number. They may have read what it did not have meanwhile.
type server struct {
	runID     string // empty: it does not say
	number    uint64 // 0: no connection has said yet
	takeovers uint64 // how often it was found to be another one, and the connections were closed
	lines     map[*line]struct{}

	former  map[string]bool // run ids of before
	returns int             // how often one of these was found again
}

// maxReturns is how often former servers may come back before several are taken to answer at a time.
const maxReturns = 10

// runID is what INFO calls the id of a process.
const runID = "run_id"

func newIdentities(log *slog.Logger) *identities {
	return &identities{log: log, by: make(map[string]*server)}
}

// at returns what is known of an address; mu is held.
func (s *identities) at(addr string) *server {
	is := s.by[addr]
	if is == nil {
		is = &server{lines: make(map[*line]struct{}), former: make(map[string]bool)}
		s.by[addr] = is
	}
	return is
}

// greet returns what a client of a server does with a new connection. A server that does not
// say who it is counts as another one, and a sentinel, whom the library greets too, as none. The
// connection that finds another server is closed with those to the former one.
func (s *identities) greet(addr string) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, c *redis.Conn) error {
		info, err := c.Info(ctx, "server").Result()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("greet redis: %w", &unsentError{err}) // the library unwraps it once
		}
		if inInfo(info, "redis_mode") == "sentinel" {
			return nil
		}
		if another := s.is(addr, inInfo(info, runID)); another {
			return fmt.Errorf("greet redis: %w", &unsentError{errTookOver})
		}
		return nil
	}
}

// inInfo returns what an INFO says of something; empty: nothing.
func inInfo(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// is records which process a server is, and reports whether it is another one than before, and the
// connections are closed.
func (s *identities) is(addr, id string) (another bool) {
	s.mu.Lock()
	at := s.at(addr)
	known := at.number != 0
	if known && at.runID == id && id != "" {
		s.mu.Unlock()
		return false
	}
	if at.former[id] {
		at.returns++
	}
	at.former[at.runID] = true
	at.runID, at.number = id, s.changes.Add(1)
	another = known && id != "" && at.returns <= maxReturns // of one that never says nothing can be told
	if another {
		at.takeovers++
		at.hangUp()
	}
	s.mu.Unlock()
	if known {
		s.log.Warn("redis restarted, or another took over: what it answered last may be lost", "addr", addr)
	}
	return another
}

// hangUp closes all connections.
func (s *server) hangUp() {
	for l := range s.lines {
		l.hangUp()
	}
	clear(s.lines)
}

// of returns who a server is; 0: there was no connection to it yet.
func (s *identities) of(addr string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(addr).number
}

// runID returns the run id of a server; false when clients have left it.
func (s *identities) runID(number uint64) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.by {
		if at.number == number {
			return at.runID, true
		}
	}
	return "", false
}
