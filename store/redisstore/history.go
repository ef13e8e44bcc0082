package redisstore

import (
	"context"
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// History implements store.Reader.
func (s *reader) History(ctx context.Context, shard store.Shard, ids []string) ([]store.History, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	all := make([]store.History, len(ids))
	for start := 0; start < len(ids); start += maxItems {
		part := ids[start:min(start+maxItems, len(ids))]
		a := newArgs(len(part), 40*len(part))
		for _, id := range part {
			a.id(id)
		}
		v, err := s.conn.Run(ctx, s.lua.history, s.keys(shard).pick(historyKey), a.values())
		if err != nil {
			return nil, conn.ReadError("history", err)
		}
		kept := list(v)
		for i := range part {
			all[start+i] = decodeHistory(text(at(kept, i)))
		}
	}
	return all, nil
}

const (
	lengthSize  = 4
	attemptSize = 15 // without who had it and what follows
)

// Marks on the length of who had a task. Nodes from before there were any leave such attempts out.
const (
	keptDue   = 1 << 15
	keptTrace = 1 << 14
)

// decodeHistory reads what remember.lua wrote. What cannot be read is left out.
func decodeHistory(s string) (h store.History) {
	for len(s) >= lengthSize {
		n := int(binary.BigEndian.Uint32([]byte(s[:lengthSize])))
		s = s[lengthSize:]
		if n < 1 || n > len(s) {
			return h
		}
		if s[0] == 0 {
			h.Result = []byte(s[1:n])
		} else if a, ok := decodeAttempt(s[:n]); ok {
			h.Attempts = append(h.Attempts, a)
		}
		s = s[n:]
	}
	return h
}

func decodeAttempt(s string) (a store.Attempt, ok bool) {
	if len(s) < attemptSize {
		return a, false
	}
	b := []byte(s[:attemptSize])
	a.Outcome, a.Number, a.Ended = store.Outcome(b[0]), int(binary.BigEndian.Uint32(b[1:])), store.Millis(binary.BigEndian.Uint64(b[5:]))
	marks, rest := binary.BigEndian.Uint16(b[13:]), s[attemptSize:]
	length := int(marks &^ (keptDue | keptTrace))
	if len(rest) < length+8*bit(marks&keptDue != 0)+len(a.Trace)*bit(marks&keptTrace != 0) {
		return a, false
	}
	var by hold
	by.who(rest[:length])
	a.Worker, a.Node, a.Started = by.Worker, by.Node, by.Started
	rest = rest[length:]
	if marks&keptDue != 0 {
		a.Due, rest = store.Millis(binary.BigEndian.Uint64([]byte(rest[:8]))), rest[8:]
	}
	if marks&keptTrace != 0 {
		rest = rest[copy(a.Trace[:], rest):]
	}
	a.Error = rest
	return a, true
}
