package conn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// health is what a server says about how it keeps data.
type health struct {
	addr     string // empty: there is only one
	version  string
	role     string
	policy   string // maxmemory-policy
	aof      bool
	fsync    string // appendfsync; empty when the server does not tell
	full     bool   // nearly out of memory
	cluster  bool   // it is a node of a cluster
	replicas int    // that follow it
	delayed  int    // writes of the append-only file that had to wait for a sync, so far
	behind   bool   // some more since the last check: the disk does not keep up
}

// fleet is the health of every primary.
type fleet []health

// probe asks every primary.
func probe(ctx context.Context, nodes *nodes) (fleet, error) {
	var mu sync.Mutex
	var found fleet
	err := nodes.each(ctx, func(ctx context.Context, node *redis.Client) error {
		h, err := probeOne(ctx, node)
		if nodes.cluster != nil {
			h.addr = node.Options().Addr
			h.cluster = false // as it should be
		}
		if err != nil && h.addr != "" {
			return fmt.Errorf("%s: %w", h.addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b health) int { return strings.Compare(a.addr, b.addr) })
	return found, nil
}

// probeOne asks one server. Managed servers may refuse CONFIG; INFO says most of
// it too.
func probeOne(ctx context.Context, node *redis.Client) (health, error) {
	info, err := node.Info(ctx).Result()
	if err != nil {
		return health{}, err
	}
	fields, replicas := make(map[string]string), 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			replicas++
		}
	}
	h := health{
		version:  fields["redis_version"],
		role:     fields["role"],
		policy:   fields["maxmemory_policy"],
		aof:      fields["aof_enabled"] == "1",
		cluster:  fields["cluster_enabled"] == "1",
		replicas: replicas,
	}
	h.delayed, _ = strconv.Atoi(fields["aof_delayed_fsync"])
	used, _ := strconv.ParseFloat(fields["used_memory"], 64)
	limit, _ := strconv.ParseFloat(fields["maxmemory"], 64)
	h.full = limit > 0 && used > 0.8*limit
	if config, err := node.ConfigGet(ctx, "appendfsync").Result(); err == nil {
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
	if h.cluster {
		dangers = append(dangers, "this redis is a node of a cluster: use redis-cluster:// in its url")
	}
	if h.policy != "noeviction" {
		dangers = append(dangers, fmt.Sprintf("redis may evict tasks (maxmemory-policy %s): set maxmemory-policy noeviction (redis-cli config set maxmemory-policy noeviction, and in redis.conf)", h.policy))
	}
	if !h.aof && !allowVolatile {
		dangers = append(dangers, "redis keeps no append-only file and loses tasks when it stops: set appendonly yes (redis-cli config set appendonly yes, and in redis.conf), or accept it with --allow-volatile")
	}
	return dangers
}

func (h health) warnings(allowVolatile bool, w wait) []string {
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
	if h.behind {
		warnings = append(warnings, "the disk of redis does not keep up with appendfsync everysec: a kill of redis may take what was acknowledged in the two seconds before")
	}
	if h.replicas < w.replicas {
		warnings = append(warnings, fmt.Sprintf("redis has %d of the %d replicas that wait_replicas asks for: no change succeeds", h.replicas, w.replicas))
	}
	return warnings
}

// compare notes what has changed since another look.
func (f fleet) compare(before fleet) {
	for i := range f {
		at := slices.IndexFunc(before, func(h health) bool { return h.addr == f[i].addr })
		f[i].behind = at >= 0 && f[i].delayed > before[at].delayed
	}
}

// dangers are those of all, saying of which where there are several.
func (f fleet) dangers(allowVolatile bool) (all []string) {
	for _, h := range f {
		all = append(all, h.named(h.dangers(allowVolatile))...)
	}
	return all
}

func (h health) named(all []string) []string {
	if h.addr == "" {
		return all
	}
	for i := range all {
		all[i] = h.addr + ": " + all[i]
	}
	return all
}

// info names the store after what an acknowledgement is worth on the weakest of
// its servers.
func (f fleet) info(allowVolatile bool, w wait) store.Info {
	levels := []store.Info{
		{Name: "redis-volatile", Durability: "none"},
		{Name: "redis-no-fsync", Durability: "fast"},
		{Name: "redis-everysec", Durability: "fast"},
		{Name: "redis-always", Durability: "synced"},
	}
	weakest := len(levels) - 1
	var warnings []string
	for _, h := range f {
		weakest = min(weakest, h.level())
		warnings = append(warnings, h.named(h.warnings(allowVolatile, w))...)
	}
	info := levels[weakest]
	info.Warnings = warnings
	if w.replicas > 0 && weakest > 0 {
		info.Durability = "replicated"
	}
	return info
}

// level is the position in the levels of fleet.info.
func (h health) level() int {
	switch {
	case !h.aof:
		return 0
	case h.fsync == "no":
		return 1
	case h.fsync == "always":
		return 3
	}
	return 2
}
