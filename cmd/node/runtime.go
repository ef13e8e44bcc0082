package node

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/server"
)

// runtimeFlags are the settings of the runtime. Their defaults are those of
// actors.Config, which is what 0 stands for.
func (cfg *Config) runtimeFlags(fs *pflag.FlagSet) {
	a := &cfg.Actors
	fs.StringVar(&a.Node, "node-name", "", "name of this node, unique among live ones (default host name and port)")
	fs.StringVar(&a.Addr, "advertise-addr", "", "where other nodes reach the gRPC port (default --grpc-addr)")
	DurationVar(fs, &a.Horizon, "horizon", 0, "how far ahead tasks are kept in memory (default 30s)")
	DurationVar(fs, &a.HoldAhead, "hold-ahead", 10*time.Millisecond, "how long before its due time a task may be held, at most 250ms; 0: it is held when it is due")
	DurationVar(fs, &a.LoadEvery, "load-every", 0, "pause between looks ahead into the store (default a quarter of the horizon)")
	fs.IntVar(&a.WheelBudget, "wheel-budget", 0, "most tasks of a shard that wait in memory for their due time (default 250000)")
	fs.IntVar(&a.ReadyBudget, "ready-budget", 0, "most due tasks of a shard that wait in memory for a worker (default 20000)")
	fs.IntVar(&a.SubscriptionBytes, "subscription-bytes", 0, "most bytes of tasks that one subscription has unsent (default 8388608)")
	fs.IntVar(&a.UnsentBytes, "unsent-bytes", 0, "most bytes of tasks that all subscriptions together have unsent (default 268435456)")
	DurationVar(fs, &a.LeaseTTL, "lease-ttl", 0, "how long shards stay owned when the store is out of reach (default 2s)")
	DurationVar(fs, &a.WatchdogInterval, "watchdog-interval", 0, "pause between scans for stray holds and tasks (default 10s)")
	fs.BoolVar(&a.NoAutoCreate, "no-auto-create", false, "refuse tasks for topics that were not created first")

	t := &a.Topic
	fs.IntVar(&t.Shards, "shards", 0, "shards of new topics (default 4)")
	DurationVar(fs, &t.Visibility, "visibility-timeout", 0, "how long a hold lasts in new topics (default 30s)")
	fs.IntVar(&t.MaxRetries, "max-retries", 3, "deliveries after the first in new topics")
	fs.Var(&cfg.backoff, "backoff", BackoffUsage+" (default exponential,base=1s,max=10m,jitter=20)")
	DurationVar(fs, &t.MaxDelay, "max-delay", 0, "farthest due time in new topics (default ten years)")
	fs.IntVar(&t.MaxPayload, "max-payload", 0, "most bytes of a payload in new topics (default 1048576)")
	DurationVar(fs, &t.DoneRetention, "done-retention", 0, "how long new topics keep done tasks (default not at all)")
	DurationVar(fs, &t.DeadRetention, "dead-retention", 0, "how long new topics keep dead letters (default for ever)")
	fs.IntVar(&t.MaxDead, "max-dead", 0, "most dead letters of new topics; beyond it the oldest are deleted (default any number)")
	fs.IntVar(&t.MaxBacklog, "max-backlog", 0, "most tasks that may wait in new topics; beyond it enqueues are refused (default any number)")
	cfg.limitFlags(fs)
}

func (cfg *Config) limitFlags(fs *pflag.FlagSet) {
	l := &cfg.Actors.Limits
	fs.IntVar(&l.Payload, "limit-payload", 0, "most bytes of any payload (default 1048576)")
	fs.IntVar(&l.BatchTasks, "limit-batch-tasks", 0, "most tasks of a batch (default 1000)")
	fs.IntVar(&l.BatchBytes, "limit-batch-bytes", 0, "most bytes of a batch (default 4194304)")
	DurationVar(fs, &l.Delay, "limit-delay", 0, "farthest due time of any topic (default ten years)")
	fs.IntVar(&l.MaxInFlight, "limit-max-in-flight", 0, "most tasks a subscription may hold (default 10000)")
	DurationVar(fs, &l.MinVisibility, "limit-min-visibility", 0, "shortest visibility timeout (default 1s)")
	DurationVar(fs, &l.MaxVisibility, "limit-max-visibility", 0, "longest visibility timeout (default 12h)")
	fs.IntVar(&l.MaxRetries, "limit-max-retries", 0, "most retries of any task (default 1000)")
	fs.IntVar(&l.WarnDue, "warn-due-per-second", 0, "tasks due in one second beyond which a schedule is warned of, of a topic without a rate (default 10000)")
	fs.IntVar(&l.Shards, "limit-shards", 0, "most shards of a topic (default 256)")
}

// completeRuntime fills in what follows from other settings and refuses what the
// runtime would misread.
func (cfg *Config) completeRuntime() error {
	a := &cfg.Actors
	if a.Node == "" {
		a.Node = defaultNode(cfg.GRPCAddr)
	}
	if a.Addr == "" {
		a.Addr = cfg.GRPCAddr
	}
	if cfg.backoff.Kind != 0 {
		a.Topic.Backoff = cfg.backoff.policy()
	}
	if err := cmp.Or(notNegative("max-retries", a.Topic.MaxRetries), notNegative("shutdown-grace", cfg.ShutdownGrace)); err != nil {
		return err
	}
	if a.Topic.MaxRetries == 0 {
		a.Topic.MaxRetries = -1 // none: 0 is the default
	}
	return cfg.checkRuntime()
}

// checkRuntime refuses what the runtime, or the port in front of it, cannot do.
func (cfg *Config) checkRuntime() error {
	var wrong *problem.SettingError
	if err := cfg.Actors.Check(server.MaxPayloads); errors.As(err, &wrong) {
		return wrongf("--%v", wrong)
	}
	return nil
}

func notNegative[T int | time.Duration](flag string, v T) error {
	if v < 0 {
		return wrongf("--%s must not be negative, not %v", flag, v)
	}
	return nil
}
