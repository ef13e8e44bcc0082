package redisstore

import (
	"fmt"
	"strings"
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
