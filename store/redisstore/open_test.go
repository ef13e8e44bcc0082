package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

func TestOpenRefusesUnsafeServers(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		says     string
	}{
		"evicts keys":            {[]string{"--maxmemory-policy", "allkeys-lru"}, "set maxmemory-policy noeviction"},
		"evicts keys with a TTL": {[]string{"--maxmemory-policy", "volatile-lru"}, "set maxmemory-policy noeviction"},
		"keeps no log":           {[]string{"--appendonly", "no"}, "config set appendonly yes, and in redis.conf), or accept it with --allow-volatile"},
		"keeps snapshots only":   {[]string{"--appendonly", "no", "--save", "60 1"}, "set appendonly yes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, c.settings...)
			s, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL()}, quiet())
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, store.ErrUnsafe) {
				t.Fatalf("error is %v, want %v", err, store.ErrUnsafe)
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %q, want one line that says %q", err, c.says)
			}
		})
	}
}

func TestOpenNeedsAServer(t *testing.T) {
	for _, url := range []string{"redis://127.0.0.1:1", "unix:///nonexistent/redis.sock"} {
		s, err := redisstore.Open(t.Context(), redisstore.Config{URL: url}, quiet())
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %q, want one line of %v", err, store.ErrUnavailable)
		}
	}
	if _, err := redisstore.Open(t.Context(), redisstore.Config{URL: "http://localhost"}, quiet()); err == nil {
		t.Error("opened a url that is none of redis")
	}
}

func TestInfoNamesTheDurability(t *testing.T) {
	for _, c := range []struct {
		settings         []string
		name, durability string
		warnings         int
	}{
		{nil, "redis-everysec", "fast", 0},
		{[]string{"--appendfsync", "always"}, "redis-always", "synced", 0},
		{[]string{"--appendfsync", "no"}, "redis-no-fsync", "fast", 1},
		{[]string{"--appendonly", "no"}, "redis-volatile", "none", 1},
	} {
		server := redistest.Start(t, c.settings...)
		s, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL(), AllowVolatile: true}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context())
		if err != nil || info.Name != c.name || info.Durability != c.durability || len(info.Warnings) != c.warnings {
			t.Errorf("with %v info is %+v, %v; want %s, %s and %d warnings", c.settings, info, err, c.name, c.durability, c.warnings)
		}
		s.Close()
	}
}

func TestInfoWarnsOfChangesWhileRunning(t *testing.T) {
	server := redistest.Start(t)
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL(), CheckEvery: time.Millisecond}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server.Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	awaitWarning(t, s, "maxmemory-policy allkeys-lru")
	server.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction", "appendonly", "no")
	awaitWarning(t, s, "append-only file")
	server.Kill()
	awaitWarning(t, s, "cannot be reached")
}

// awaitWarning returns once the store warns of something.
func awaitWarning(t *testing.T, s *redisstore.Store, about string) {
	t.Helper()
	eventually(t, "wait for a warning", func() error {
		info, err := s.Info(t.Context())
		if err == nil && !slices.ContainsFunc(info.Warnings, func(w string) bool { return strings.Contains(w, about) }) {
			err = fmt.Errorf("warnings are %q, none is about %q", info.Warnings, about)
		}
		return err
	})
}
