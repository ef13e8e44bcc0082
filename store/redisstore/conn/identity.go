package conn

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// identities knows which process each server is, by its address: one that was restarted, or
// took over, is another, and may not have what was answered before. Every new connection
// asks, so nothing is asked while the servers stay. It is safe for concurrent use.
type identities struct {
	log     *slog.Logger
	changes atomic.Uint64

	mu sync.Mutex
	by map[string]uint64 // guarded by mu; one that sentinels name has the address ""
}

func newIdentities(log *slog.Logger) *identities {
	return &identities{log: log, by: make(map[string]uint64)}
}

// greet returns what a client of a server does with a new connection. A server that does not
// say who it is counts as another one.
func (s *identities) greet(addr string) func(context.Context, *redis.Conn) error {
	return func(ctx context.Context, c *redis.Conn) error {
		info, err := c.Info(ctx, "server").Result()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		s.is(addr, identityIn(info))
		return nil
	}
}

// identityIn is the identity of the process that an INFO is of.
func identityIn(info string) uint64 {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			h := fnv.New64a()
			_, _ = h.Write([]byte(id))
			return h.Sum64()
		}
	}
	return rand.Uint64()
}

// is records who a server is.
func (s *identities) is(addr string, id uint64) {
	s.mu.Lock()
	was := s.by[addr]
	s.by[addr] = id
	s.mu.Unlock()
	if was == id {
		return
	}
	s.changes.Add(1)
	if was != 0 {
		s.log.Warn("redis restarted, or another took over: what it answered last may be lost", "addr", addr)
	}
}

// of returns who a server is; 0: there was no connection to it yet.
func (s *identities) of(addr string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[addr]
}
