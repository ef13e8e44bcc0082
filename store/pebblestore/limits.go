package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// limits are the rates and permits in memory. What changes is written behind them
// without a sync: the log is one, so a hold that is synced has synced what it took.
type limits struct {
	sync.Mutex
	table *limit.Table // guarded by the mutex
}

// What a key of tableLimits is about.
const (
	limitRate   byte = 'r'
	limitPermit byte = 'p'
)

// Reserve implements store.Limits.
func (s *Store) Reserve(ctx context.Context, asked []store.Reservation) (got []store.Tokens, err error) {
	err = s.changeLimits(ctx, func(t *limit.Table) (changed []limit.Change) {
		got, changed = t.Reserve(asked, now())
		return changed
	})
	return got, err
}

// Acquire implements store.Limits.
func (s *Store) Acquire(ctx context.Context, asked []store.Acquire) (got []store.Acquired, err error) {
	err = s.changeLimits(ctx, func(t *limit.Table) (changed []limit.Change) {
		got, changed = t.Acquire(asked, now())
		return changed
	})
	return got, err
}

// Move implements store.Limits.
func (s *Store) Move(ctx context.Context, permits []store.Permit) error {
	return s.changeLimits(ctx, func(t *limit.Table) []limit.Change { return t.Move(permits) })
}

// Free implements store.Limits.
func (s *Store) Free(ctx context.Context, permits []store.Permit) (waiting [][]string, err error) {
	err = s.changeLimits(ctx, func(t *limit.Table) (changed []limit.Change) {
		waiting, changed = t.Free(permits, now())
		return changed
	})
	return waiting, err
}

// changeLimits changes the table and writes what is different.
func (s *Store) changeLimits(ctx context.Context, do func(*limit.Table) []limit.Change) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	s.limits.Lock()
	defer s.limits.Unlock()
	changed := do(s.limits.table)
	if len(changed) == 0 {
		return nil
	}
	batch := s.db.NewBatch()
	for _, c := range changed {
		if err := writeLimit(batch, c); err != nil {
			return errors.Join(s.readError(err), batch.Close())
		}
	}
	s.disk.changed(batch.Len(), int(batch.Count()))
	if err := batch.Commit(pebble.NoSync); err != nil {
		s.disk.freeze(err)
		return s.outcome()
	}
	return batch.Close()
}

func writeLimit(batch *pebble.Batch, c limit.Change) error {
	key := appendLimitKey(nil, c)
	switch {
	case c.Rate && c.State != nil:
		return batch.Set(key, appendRate(nil, c), nil)
	case !c.Rate && c.Until != 0:
		return batch.Set(key, appendMillis(nil, c.Until), nil)
	}
	return batch.Delete(key, nil)
}

// appendLimitKey names what a change is about: what it is of, the topic, for a permit
// its holder, and last the key.
func appendLimitKey(b []byte, c limit.Change) []byte {
	what := limitPermit
	if c.Rate {
		what = limitRate
	}
	b = append(appendPrefix(b, 0, tableLimits), what)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(c.Key.Topic))), c.Key.Topic...)
	if !c.Rate {
		b = append(b, c.Holder[:]...)
	}
	return append(b, c.Key.Key...)
}

func decodeLimitKey(b []byte) (c limit.Change, ok bool) {
	in := input{b: b[prefixLen:]}
	c.Rate = in.byte() == limitRate
	if length := in.bytes(2); len(length) == 2 {
		c.Key.Topic = string(in.bytes(uint64(binary.BigEndian.Uint16(length))))
	}
	if !c.Rate {
		copy(c.Holder[:], in.bytes(uint64(len(c.Holder))))
	}
	c.Key.Key = string(in.b)
	return c, !in.short
}

// appendRate appends the stored form of a rate: its kind, its numbers, and the slots
// of a window.
func appendRate(b []byte, c limit.Change) []byte {
	b = append(b, byte(c.State.Kind))
	for _, n := range [...]int64{c.Rests, c.State.Last, c.State.Period, c.State.Count, int64(len(c.State.Used))} {
		b = binary.AppendVarint(b, n)
	}
	for _, u := range c.State.Used {
		b = binary.AppendVarint(b, u.End)
		b = binary.AppendVarint(b, int64(u.Count))
	}
	return b
}

func decodeRate(b []byte, c *limit.Change) bool {
	if len(b) == 0 {
		return false
	}
	c.State = &limit.State{Kind: store.RateKind(b[0])}
	b = b[1:]
	good := true
	next := func() int64 {
		n, size := binary.Varint(b)
		if good = good && size > 0; good {
			b = b[size:]
		}
		return n
	}
	c.Rests, c.State.Last, c.State.Period, c.State.Count = next(), next(), next(), next()
	for slots := next(); good && slots > 0; slots-- {
		c.State.Used = append(c.State.Used, limit.Used{End: next(), Count: int(next())})
	}
	return good
}

// readLimits reads the table. What cannot be read is as if it had rested.
func (s *Store) readLimits() error {
	s.limits.table = limit.NewTable()
	lower, upper := appendPrefix(nil, 0, tableLimits), appendPrefix(nil, 0, tableLimits+1)
	return s.scan(lower, upper, func(key, value []byte) (bool, error) {
		c, ok := decodeLimitKey(key)
		switch {
		case !ok:
		case c.Rate:
			ok = decodeRate(value, &c)
		case len(value) == 8:
			c.Until = millisAt(value)
		default:
			ok = false
		}
		if ok {
			s.limits.table.Load(c)
		} else {
			s.log.Error("unreadable limit: it begins anew")
		}
		return true, nil
	})
}
