package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ddq-io/ddq/bench/box"
)

// readyWithin bounds how long a server may take to become ready: with a large
// store it may have logs to replay.
const readyWithin = 2 * time.Minute

// Server is a ddq that was started, with the store behind it. OpenStore comes before Start, unless
// another server has opened the store.
type Server struct {
	Name     string // of its log; "server" if empty
	Process  *box.Process
	GRPCAddr string
	HTTPAddr string

	// What OpenStore opened: the store by name, what was set of it, and its process if it has one.
	Store    string
	Settings string
	Disk     []*box.Process

	data  string // directory of the embedded store
	redis string // address of the Redis, if that is the store
}

// OpenStore starts the store where it is a process of its own, and returns what
// the server's --store wants.
func (s *Server) OpenStore(ctx context.Context, store string, b *box.Box) (string, error) {
	fsync := ""
	s.Store = store
	switch store {
	case "embedded", "memory":
		return store, nil
	case "redis", "redis-everysec":
		s.Store, fsync = "redis-everysec", "everysec"
	case "redis-always":
		fsync = "always"
	default:
		u, err := url.Parse(store)
		if err != nil {
			return "", CheckStore(store)
		}
		s.redis, s.Store = u.Host, u.Redacted()
		return store, nil
	}
	redis, err := box.StartRedis(ctx, b, fsync)
	if err != nil {
		return "", err
	}
	s.redis = redis.Addr
	s.Disk = []*box.Process{redis.Process}
	s.Settings = "redis-server " + redis.Version
	return "redis://" + redis.Addr, nil
}

// CheckStore refuses a --store that cannot be started. The error does not repeat
// a URL that does not parse: it may hold a password.
func CheckStore(store string) error {
	switch store {
	case "embedded", "memory", "redis", "redis-everysec", "redis-always":
		return nil
	}
	u, err := url.Parse(store)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") {
		return errors.New("--store must be embedded, memory, redis-everysec, redis-always or a redis:// URL")
	}
	return nil
}

// Start runs the server on ports of its own, with flags besides, and waits until it is ready.
func (s *Server) Start(ctx context.Context, bin, store string, b *box.Box, flags ...string) (err error) {
	if s.data, err = b.Mkdir("data"); err != nil {
		return err
	}
	if s.GRPCAddr, err = b.Addr(); err != nil {
		return err
	}
	if s.HTTPAddr, err = b.Addr(); err != nil {
		return err
	}
	cmd := exec.Command(bin, "server", "--data", s.data,
		"--grpc-addr", s.GRPCAddr, "--http-addr", s.HTTPAddr, "--log-level", "warn")
	cmd.Args = append(cmd.Args, flags...)
	cmd.Env, cmd.Dir = append(box.PlainEnv(), "DDQ_STORE="+store), b.Dir // everybody sees arguments, and the URL may have a password
	if s.Process, err = b.Start(cmp.Or(s.Name, "server"), cmd); err != nil {
		return err
	}
	return s.WaitReady(ctx)
}

// WaitReady waits until the server serves, also after Restart.
func (s *Server) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return s.Process.WaitReady(ctx, func(ctx context.Context) error { return box.Ready(ctx, s.HTTPAddr) })
}

// Restart kills the server as kill -9 does, calls killed, starts it again, and returns the moment
// of the start without waiting for readiness. Ports, data and store stay the same.
func (s *Server) Restart(_ context.Context, killed func()) (time.Time, error) {
	if err := s.Process.Kill(); err != nil {
		return time.Time{}, fmt.Errorf("kill the server: %w", err)
	}
	killed()
	from := time.Now()
	return from, s.Process.Revive()
}

// StoreBytes is how to weigh the store, nil where it cannot be told.
func (s *Server) StoreBytes() func(context.Context) (int64, error) {
	switch {
	case s.redis != "":
		return func(ctx context.Context) (int64, error) { return box.UsedMemory(ctx, s.redis) }
	case s.Store == "embedded":
		return func(context.Context) (int64, error) { return diskUsage(s.data) }
	}
	return nil
}

// diskUsage sums the files below dir. Files that go away meanwhile do not count.
func diskUsage(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
