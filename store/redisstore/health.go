package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// health is what a server says about how it keeps data.
type health struct {
	version string
	role    string
	policy  string // maxmemory-policy
	aof     bool
	fsync   string // appendfsync; empty when the server does not tell
	full    bool   // nearly out of memory
}

// probe asks the server. Managed servers may refuse CONFIG; INFO says most of it too.
func (s *Store) probe(ctx context.Context) (health, error) {
	info, err := s.client.Info(ctx).Result()
	if err != nil {
		return health{}, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	h := health{
		version: fields["redis_version"],
		role:    fields["role"],
		policy:  fields["maxmemory_policy"],
		aof:     fields["aof_enabled"] == "1",
	}
	used, _ := strconv.ParseFloat(fields["used_memory"], 64)
	limit, _ := strconv.ParseFloat(fields["maxmemory"], 64)
	h.full = limit > 0 && used > 0.8*limit
	if config, err := s.client.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		h.fsync = config["appendfsync"]
	}
	return h, nil
}

// dangers are the reasons for which the server may lose what it acknowledged,
// each saying what to change.
func (h health) dangers(allowVolatile bool) (dangers []string) {
	if major, _ := strconv.Atoi(strings.SplitN(h.version, ".", 2)[0]); major < 7 {
		dangers = append(dangers, fmt.Sprintf("redis %s is too old: use 7.0 or later", h.version))
	}
	if h.role == "slave" {
		dangers = append(dangers, "this redis is a replica: use the address of its primary")
	}
	if h.policy != "noeviction" {
		dangers = append(dangers, fmt.Sprintf("redis may evict tasks (maxmemory-policy %s): set maxmemory-policy noeviction", h.policy))
	}
	if !h.aof && !allowVolatile {
		dangers = append(dangers, "redis keeps no append-only file and loses tasks when it stops: set appendonly yes, or allow volatile storage")
	}
	return dangers
}

func (h health) warnings(allowVolatile bool) []string {
	warnings := h.dangers(allowVolatile)
	if h.aof && h.fsync == "no" {
		warnings = append(warnings, "redis leaves fsync to the system (appendfsync no): a power cut may lose more than a second of tasks")
	}
	if h.aof && h.fsync == "" {
		warnings = append(warnings, "redis does not tell how often it syncs (CONFIG GET appendfsync refused): everysec is assumed")
	}
	if !h.aof && allowVolatile {
		warnings = append(warnings, "redis keeps no append-only file: tasks are lost when it stops")
	}
	if h.full {
		warnings = append(warnings, "redis uses more than 80 % of maxmemory")
	}
	return warnings
}

// info names the store after what an acknowledgement is worth.
func (h health) info(allowVolatile bool) store.Info {
	info := store.Info{Name: "redis-everysec", Durability: "fast", Warnings: h.warnings(allowVolatile)}
	switch {
	case !h.aof:
		info.Name, info.Durability = "redis-volatile", "none"
	case h.fsync == "always":
		info.Name, info.Durability = "redis-always", "synced"
	case h.fsync == "no":
		info.Name = "redis-no-fsync"
	}
	return info
}

// Info implements store.Store. It tells what the last check of the server found;
// the server is checked on opening and every Config.CheckEvery.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	return *s.info.Load(), nil
}

// watch checks the server until the context ends.
func (s *Store) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.check(ctx)
		}
	}
}

// check looks at the server once more and logs what is new.
func (s *Store) check(ctx context.Context) {
	before := s.info.Load()
	h, err := s.probe(ctx)
	if ctx.Err() != nil {
		return
	}
	info := *before
	if err != nil {
		info.Warnings = []string{"redis cannot be reached: " + err.Error()}
	} else {
		info = h.info(s.allowVolatile)
	}
	s.info.Store(&info)
	known := strings.Join(before.Warnings, "\n")
	for _, warning := range info.Warnings {
		if !strings.Contains(known, warning) {
			s.log.Warn("store has a problem", "err", warning)
		}
	}
}
