package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/box"
)

// readyWithin bounds how long a server may take to become ready: with a large
// store it may have logs to replay.
const readyWithin = 2 * time.Minute

// adminTimeout bounds calls that may have to count or delete a backlog.
const adminTimeout = time.Minute

// visibilityTimeout is short, so that what a killed server or worker held comes
// back within the run.
const visibilityTimeout = 5 * time.Second

// ddqServer is a ddq that the harness started, with the store behind it.
type ddqServer struct {
	name     string // of its log; "server" if empty
	process  *box.Process
	grpcAddr string
	httpAddr string
	data     string // directory of the embedded store
	redis    string // address of the Redis, if that is the store
}

// openDDQ starts what the options ask for, or connects to what runs.
func openDDQ(ctx context.Context, o Options, b *box.Box) (*Instance, error) {
	topic := fmt.Sprintf("bench-%d", o.Seed)
	if o.Addr != "" {
		return describeDDQ(ctx, &Instance{Target: o.policies.target(o.Addr, topic), Addr: o.Addr}, o.Addr, topic, o)
	}
	inst := &Instance{Store: o.Store}
	s := &ddqServer{}
	storeFlag, err := s.openStore(ctx, o.Store, b, inst)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, o.ServerBin, storeFlag, b); err != nil {
		return nil, err
	}
	inst.Target, inst.Addr = o.policies.target(s.grpcAddr, topic), s.grpcAddr
	inst.Server = []*box.Process{s.process}
	inst.StoreBytes = s.storeBytes(o.Store)
	inst.Restart = s.restart
	return describeDDQ(ctx, inst, s.grpcAddr, topic, o)
}

// openStore starts the store where it is a process of its own, and returns what
// the server's --store wants.
func (s *ddqServer) openStore(ctx context.Context, store string, b *box.Box, inst *Instance) (string, error) {
	fsync := ""
	switch store {
	case "embedded", "memory":
		return store, nil
	case "redis", "redis-everysec":
		inst.Store, fsync = "redis-everysec", "everysec"
	case "redis-always":
		fsync = "always"
	default:
		u, err := url.Parse(store)
		if err != nil {
			return "", CheckStore(store)
		}
		s.redis, inst.Store = u.Host, u.Redacted()
		return store, nil
	}
	redis, err := box.StartRedis(ctx, b, fsync)
	if err != nil {
		return "", err
	}
	s.redis = redis.Addr
	inst.Disk = []*box.Process{redis.Process}
	inst.Settings = "redis-server " + redis.Version
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

// start runs the server on ports of its own, with flags besides, and waits until it is ready.
func (s *ddqServer) start(ctx context.Context, bin, store string, b *box.Box, flags ...string) (err error) {
	if s.data, err = b.Mkdir("data"); err != nil {
		return err
	}
	if s.grpcAddr, err = b.Addr(); err != nil {
		return err
	}
	if s.httpAddr, err = b.Addr(); err != nil {
		return err
	}
	cmd := exec.Command(bin, "server", "--store", store, "--data", s.data,
		"--grpc-addr", s.grpcAddr, "--http-addr", s.httpAddr, "--log-level", "warn")
	cmd.Args = append(cmd.Args, flags...)
	cmd.Env, cmd.Dir = box.PlainEnv(), b.Dir
	if s.process, err = b.Start(cmp.Or(s.name, "server"), cmd); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

func (s *ddqServer) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return s.process.WaitReady(ctx, func(ctx context.Context) error { return box.Ready(ctx, s.httpAddr) })
}

// restart is Instance.Restart: ports, data and store stay the same.
func (s *ddqServer) restart(_ context.Context, killed func()) (time.Time, error) {
	if err := s.process.Kill(); err != nil {
		return time.Time{}, fmt.Errorf("kill the server: %w", err)
	}
	killed()
	from := time.Now()
	return from, s.process.Revive()
}

// storeBytes is how to weigh a store, nil where it cannot be told.
func (s *ddqServer) storeBytes(store string) func(context.Context) (int64, error) {
	switch {
	case s.redis != "":
		return func(ctx context.Context) (int64, error) { return box.UsedMemory(ctx, s.redis) }
	case store == "embedded":
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

// describeDDQ makes the topic and asks the server what it is.
func describeDDQ(ctx context.Context, inst *Instance, addr, topic string, o Options) (*Instance, error) {
	c, err := client.Dial(addr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	server, err := c.Server(ctx)
	if err != nil {
		return nil, fmt.Errorf("server at %s: %s", addr, err.Error()) // not wrapped: ddq would explain it for its own --addr
	}
	if _, err := c.CreateTopic(ctx, topic, o.policies.topic()); err != nil {
		return nil, fmt.Errorf("create topic %s: %w", topic, err)
	}
	inst.Version = server.Version
	inst.Settings = strings.TrimPrefix(fmt.Sprintf("%s, %s", inst.Settings, workersOf(o)), ", ")
	if p := o.policies; len(p) > 0 {
		inst.Settings += ", tasks use " + strings.Join(p, ", ")
	}
	if inst.Store == "" {
		inst.Store = server.Store
	}
	inst.Pending = func(ctx context.Context) (int64, error) { return pending(ctx, addr, topic) }
	if len(inst.Server) == 0 || strings.Contains(inst.Store, "://") {
		inst.Close = func(ctx context.Context) error { return deleteTopic(ctx, addr, topic) }
	}
	return inst, nil
}

// workersOf says how many workers there are and what each takes.
func workersOf(o Options) string {
	most := strconv.Itoa(o.InFlight)
	if o.InFlight == 0 {
		most = "the default"
	}
	return fmt.Sprintf("%d workers take %s in flight each", o.Workers, most)
}

// pending counts the tasks of a topic that wait.
func pending(ctx context.Context, addr, topic string) (int64, error) {
	c, err := client.Dial(addr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	status, err := c.DescribeTopic(ctx, topic)
	return status.Depth.Scheduled + status.Depth.Ready, err
}

// deleteTopic removes what the bench left in a server or store that goes on.
func deleteTopic(ctx context.Context, addr, topic string) error {
	c, err := client.Dial(addr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return err
	}
	return errors.Join(c.DeleteTopic(ctx, topic, true), c.Close())
}
