package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one Lua file, with the files that it includes in place.
type script struct {
	name, source, sha string
}

// scripts are all of them.
type scripts struct {
	add, hold, holdNew, ack, nack, extend,
	remove, reschedule, requeue, removeDead, trim,
	claim, release, renew, session,
	stamp, raise, get, window, stats, sweep, putTopic *script
}

func loadScripts() (*scripts, error) {
	l := new(scripts)
	for name, target := range map[string]**script{
		"add": &l.add, "hold": &l.hold, "hold_new": &l.holdNew, "ack": &l.ack, "nack": &l.nack, "extend": &l.extend,
		"remove": &l.remove, "reschedule": &l.reschedule, "requeue": &l.requeue, "remove_dead": &l.removeDead, "trim": &l.trim,
		"claim": &l.claim, "release": &l.release, "renew": &l.renew, "session": &l.session,
		"stamp": &l.stamp, "raise": &l.raise, "get": &l.get, "window": &l.window, "stats": &l.stats, "sweep": &l.sweep, "put_topic": &l.putTopic,
	} {
		s, err := loadScript(name)
		if err != nil {
			return nil, fmt.Errorf("load script: %w", err)
		}
		*target = s
	}
	return l, nil
}

var includeLine = regexp.MustCompile(`(?m)^\s*-- include (\w+\.lua)$`)

func loadScript(name string) (*script, error) {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		return nil, err
	}
	source := includeLine.ReplaceAllStringFunc(string(text), func(line string) string {
		included, readErr := luaFiles.ReadFile("lua/" + includeLine.FindStringSubmatch(line)[1])
		if readErr != nil {
			err = readErr
		}
		return strings.TrimSuffix(string(included), "\n")
	})
	sum := sha1.Sum([]byte(source))
	return &script{name, source, hex.EncodeToString(sum[:])}, err
}

// run runs a script. A server that does not know it yet (after a restart, a
// failover or SCRIPT FLUSH) has run nothing and is sent the source.
func (s *Store) run(ctx context.Context, sc *script, keys []string, argv []any) (any, error) {
	reply, err := s.client.EvalSha(ctx, sc.sha, keys, argv...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.client.Eval(ctx, sc.source, keys, argv...).Result()
	}
	return reply, err
}

// runEach runs a script once for each set of keys, in one round trip where it is known.
func (s *Store) runEach(ctx context.Context, sc *script, keys [][]string, argv ...any) ([]any, error) {
	replies := make([]any, len(keys))
	cmds, _ := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			p.EvalSha(ctx, sc.sha, k, argv...)
		}
		return nil
	})
	for i, cmd := range cmds {
		reply, err := cmd.(*redis.Cmd).Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			reply, err = s.run(ctx, sc, keys[i], argv)
		}
		if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}
