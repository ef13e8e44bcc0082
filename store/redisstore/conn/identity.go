package conn

import (
	"context"
	"errors"
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
type identities struct {
	log     *slog.Logger
	changes atomic.Uint64

	mu sync.Mutex
	by map[string]server // guarded by mu; one that sentinels name has the address ""
}

// server is a process, as clients have come to it: one that they left and came back to has
// another number. They may have read what it did not have meanwhile.
type server struct {
	runID  string // empty: it does not say
	number uint64 // never 0
}

// runID is what INFO calls the id of a process.
const runID = "run_id"

func newIdentities(log *slog.Logger) *identities {
	return &identities{log: log, by: make(map[string]server)}
}

// greet returns what a client of a server does with a new connection. A server that does not
// say who it is counts as another one, and a sentinel, whom the library greets too, as none.
func (s *identities) greet(addr string) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, c *redis.Conn) error {
		info, err := c.Info(ctx, "server").Result()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		if inInfo(info, "redis_mode") != "sentinel" {
			s.is(addr, inInfo(info, runID))
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

// is records which process a server is.
func (s *identities) is(addr, id string) {
	s.mu.Lock()
	was, known := s.by[addr]
	if known && was.runID == id && id != "" {
		s.mu.Unlock()
		return
	}
	s.by[addr] = server{runID: id, number: s.changes.Add(1)}
	s.mu.Unlock()
	if known {
		s.log.Warn("redis restarted, or another took over: what it answered last may be lost", "addr", addr)
	}
}

// of returns who a server is; 0: there was no connection to it yet.
func (s *identities) of(addr string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[addr].number
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
