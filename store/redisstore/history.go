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
	attemptSize = 15 // without who had it and the error
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
	rest, length := s[attemptSize:], int(binary.BigEndian.Uint16(b[13:]))
	if len(rest) < length {
		return a, false
	}
	var by hold
	by.who(rest[:length])
	return store.Attempt{
		Number:  int(binary.BigEndian.Uint32(b[1:])),
		Worker:  by.Worker,
		Node:    by.Node,
		Started: by.Started,
		Ended:   store.Millis(binary.BigEndian.Uint64(b[5:])),
		Outcome: store.Outcome(b[0]),
		Error:   rest[length:],
	}, true
}
