package redisstore

import (
	"context"
	"embed"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one Lua file, with the files that it includes in place.
type script struct {
	name, source, sha string
	reads             bool // it changes nothing
}

// scripts are all of them. Nobody changes them once they are assembled.
type scripts struct {
	add, hold, holdNew, ack, nack, extend, cancel,
	remove, move, update, requeue, removeDead, trim, trimDead, addKeyed, trimKeys,
	claim, release, renew, session,
	stamp, raise, get, history, window, scan, records, lookup, reindex, sweepIndex, sweepAttrs, laneWindow, lanes, stats, sweep, sweepLanes, sweepOrder, inOrder, putTopic,
	histogram, reserve, acquire, movePermits, free,
	watch, changes, changesWaited, trimLog,
	seal, drop, open *script
}

// loadScripts returns the scripts, which are the same for every store of the process: putting
// them together costs more than the rest of Open.
var loadScripts = sync.OnceValues(assembleScripts)

func assembleScripts() (*scripts, error) {
	l := new(scripts)
	for name, target := range map[string]**script{
		"remove": &l.remove, "move": &l.move, "update": &l.update, "requeue": &l.requeue, "remove_dead": &l.removeDead, "trim": &l.trim,
		"trim_dead": &l.trimDead, "add_keyed": &l.addKeyed, "trim_keys": &l.trimKeys,
		"add": &l.add, "hold": &l.hold, "hold_new": &l.holdNew, "ack": &l.ack, "nack": &l.nack, "extend": &l.extend, "cancel": &l.cancel,
		"claim": &l.claim, "release": &l.release, "renew": &l.renew, "session": &l.session,
		"stamp": &l.stamp, "raise": &l.raise, "get": &l.get, "history": &l.history, "window": &l.window, "scan": &l.scan, "records": &l.records, "lane_window": &l.laneWindow, "lookup": &l.lookup, "reindex": &l.reindex, "sweep_index": &l.sweepIndex, "sweep_attrs": &l.sweepAttrs, "lanes": &l.lanes, "stats": &l.stats, "sweep": &l.sweep, "sweep_lanes": &l.sweepLanes, "sweep_order": &l.sweepOrder, "in_order": &l.inOrder, "put_topic": &l.putTopic, "histogram": &l.histogram,
		"reserve": &l.reserve, "acquire": &l.acquire, "move_permits": &l.movePermits, "free": &l.free,
		"watch": &l.watch, "changes": &l.changes, "changes_waited": &l.changesWaited, "trim_log": &l.trimLog,
		"seal": &l.seal, "drop": &l.drop, "open": &l.open,
	} {
		s, err := loadScript(name)
		if err != nil {
			return nil, fmt.Errorf("load script: %w", err)
		}
		*target = s
	}
	return l, nil
}

// run runs a script on the node that has its keys, which share a slot. A server
// that does not know it yet (after a restart, a failover or SCRIPT FLUSH) has run
// nothing and is sent the source.
func (s *Store) run(ctx context.Context, sc *script, keys []string, argv []any) (any, error) {
	return s.runAndWait(ctx, sc, !sc.reads, keys, argv)
}

// run runs a script there, as Store.run does, without waiting for replicas.
func (n *nodes) run(ctx context.Context, sc *script, key string, argv []any) (any, error) {
	cmd := evalCmd(ctx, "evalsha", sc.sha, []string{key}, argv)
	err := n.send(ctx, key, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.source, []string{key}, argv)
		err = n.send(ctx, key, cmd)
	}
	return cmd.Val(), err
}

// runAndWait is run with a say in whether replicas are waited for.
func (s *Store) runAndWait(ctx context.Context, sc *script, wait bool, keys []string, argv []any) (any, error) {
	cmd := evalCmd(ctx, "evalsha", sc.sha, keys, argv)
	err := s.sendAndWait(ctx, keys[0], wait, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = evalCmd(ctx, "eval", sc.source, keys, argv)
		err = s.sendAndWait(ctx, keys[0], wait, cmd)
	}
	if err != nil {
		return nil, s.blame(ctx, err, keys...)
	}
	return cmd.Val(), nil
}

func (s *Store) sendAndWait(ctx context.Context, key string, wait bool, cmd redis.Cmder) error {
	if wait {
		return s.change(ctx, key, cmd)
	}
	return s.nodes.send(ctx, key, cmd)
}

func evalCmd(ctx context.Context, name, what string, keys []string, argv []any) *redis.Cmd {
	args := make([]any, 3, 3+len(keys)+len(argv))
	args[0], args[1], args[2] = name, what, len(keys)
	for _, key := range keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, argv...)...)
}

// runEach runs a script that reads once for each set of keys, in one round trip
// to each node.
func (s *Store) runEach(ctx context.Context, sc *script, keys [][]string, argv ...any) ([]any, error) {
	return s.runEachWith(ctx, sc, keys, func(int) []any { return argv })
}

// runEachWith is runEach with arguments of its own for each set of keys.
func (s *Store) runEachWith(ctx context.Context, sc *script, keys [][]string, argv func(i int) []any) ([]any, error) {
	cmds := make([]*redis.Cmd, len(keys))
	var wg sync.WaitGroup
	for node, items := range s.byNode(ctx, keys) {
		wg.Go(func() {
			for _, i := range items {
				cmds[i] = evalCmd(ctx, "evalsha", sc.sha, keys[i], argv(i))
			}
			pipeline(ctx, node, cmds, items)
			if forgotten := without(cmds, items); len(forgotten) > 0 && node.ScriptLoad(ctx, sc.source).Err() == nil {
				pipeline(ctx, node, cmds, forgotten)
			}
		})
	}
	wg.Wait()
	replies := make([]any, len(keys))
	for i, cmd := range cmds {
		if cmd != nil && cmd.Err() == nil {
			replies[i] = cmd.Val()
			continue
		}
		if s.nodes.patience == 0 && !redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return nil, s.blame(ctx, cmd.Err(), keys[i]...)
		}
		reply, err := s.run(ctx, sc, keys[i], argv(i)) // to where it is now
		if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}

// byNode groups the positions of keys by the node that has them, but for those
// whose node is not known.
func (s *Store) byNode(ctx context.Context, keys [][]string) map[*redis.Client][]int {
	groups := make(map[*redis.Client][]int)
	for i, k := range keys {
		if node, err := s.nodes.of(ctx, k[0]); err == nil {
			groups[node] = append(groups[node], i)
		}
	}
	return groups
}

// pipeline sends some of the commands to a node in one round trip.
func pipeline(ctx context.Context, node *redis.Client, cmds []*redis.Cmd, items []int) {
	some := make([]redis.Cmder, len(items))
	for k, i := range items {
		some[k] = cmds[i]
	}
	if err := exchange(ctx, node, false, some); err != nil && cmds[items[0]].Err() == nil {
		cmds[items[0]].SetErr(err)
	}
}

// without returns which of the commands found no script on the server.
func without(cmds []*redis.Cmd, items []int) (forgotten []int) {
	for _, i := range items {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			forgotten = append(forgotten, i)
		}
	}
	return forgotten
}
