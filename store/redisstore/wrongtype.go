package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// wrongTypeError is the refusal of a command because a key is of another type than ddq
// gives it. Redis says neither which key nor which type.
type wrongTypeError struct {
	key, is, want string
	reply         error
}

func (e *wrongTypeError) Error() string {
	return fmt.Sprintf("key %q is a %s where ddq has a %s: %v", e.key, e.is, e.want, e.reply)
}

func (e *wrongTypeError) Unwrap() error { return e.reply }

// send carries a command that changes nothing about one key to the node that has it.
func (s *Store) send(ctx context.Context, key string, cmd redis.Cmder) error {
	return s.blame(ctx, s.nodes.send(ctx, key, cmd), key)
}

// blame looks for the key that a command was refused for, if it was for the type of one.
func (s *Store) blame(ctx context.Context, err error, keys ...string) error {
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	types, cmds := make([]*redis.StatusCmd, len(keys)), make([]redis.Cmder, len(keys))
	for i, key := range keys {
		types[i] = redis.NewStatusCmd(ctx, "type", key)
		cmds[i] = types[i]
	}
	if s.nodes.send(ctx, keys[0], cmds...) != nil {
		return err
	}
	for i, key := range keys {
		if is, want := types[i].Val(), typeOf(key); want != "" && is != "" && is != "none" && is != want {
			return &wrongTypeError{key, is, want, err}
		}
	}
	return err
}

// typeOf is the type that ddq gives a key; empty when it is not known.
func typeOf(key string) string {
	switch {
	case key == topicsKey, strings.HasPrefix(key, "ddq:node:"), strings.Contains(key, "}:waiting:"):
		return "hash"
	case strings.Contains(key, "}:held:"):
		return "zset"
	case strings.Contains(key, "}:rate:"):
		return "string"
	}
	switch key[strings.LastIndexByte(key, ':')+1:] {
	case "owner", "data", "running", "notes", "traits", "history", "marks", "attrs":
		return "hash"
	case "tasks", "dlq", "done", "kept", "lanes", "looks", "index", "order":
		return "zset"
	case "log":
		return "stream"
	}
	return ""
}
