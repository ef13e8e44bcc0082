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

// limits are the rates and permits in memory. Changes of rates are written behind them
// without a sync: the log is one, so a hold that is synced has synced what it took.
// Permits are not written: no other process holds tasks of this directory, so on
// opening it those of the holds are all there are.
type limits struct {
	sync.Mutex
	table *limit.Table // guarded by the mutex
}

// What a key of tableLimits is about.
const (
	limitRate   byte = 'r'
	limitPermit byte = 'p' // written by versions of before; removed on opening
)

// Reserve implements store.Limits.
func (s *Store) Reserve(ctx context.Context, asked []store.Reservation) (got []store.Tokens, err error) {
	err = s.withLimits(ctx, func(t *limit.Table) error {
		var changed []limit.Change
		got, changed = t.Reserve(asked, now())
		return s.writeRates(changed)
	})
	return got, err
}

// Acquire implements store.Limits.
func (s *Store) Acquire(ctx context.Context, asked []store.Acquire) (got []store.Acquired, err error) {
	err = s.withLimits(ctx, func(t *limit.Table) error {
		got = t.Acquire(asked, now())
		return nil
	})
	return got, err
}

// Move implements store.Limits.
func (s *Store) Move(ctx context.Context, permits []store.Permit) error {
	return s.withLimits(ctx, func(t *limit.Table) error {
		t.Move(permits)
		return nil
	})
}

// Free implements store.Limits.
func (s *Store) Free(ctx context.Context, permits []store.Permit) (waiting [][]string, err error) {
	err = s.withLimits(ctx, func(t *limit.Table) error {
		waiting = t.Free(permits, now())
		return nil
	})
	return waiting, err
}

// withLimits calls do with the table under its lock.
func (s *Store) withLimits(ctx context.Context, do func(*limit.Table) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	s.limits.Lock()
	defer s.limits.Unlock()
	return do(s.limits.table)
}

// writeRates writes what is different.
func (s *Store) writeRates(changed []limit.Change) error {
	if len(changed) == 0 {
		return nil
	}
	batch := s.db.NewBatch()
	for _, c := range changed {
		if err := writeRate(batch, c); err != nil {
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

func writeRate(batch *pebble.Batch, c limit.Change) error {
	key := appendRateKey(nil, c.Key)
	if c.State == nil {
		return batch.Delete(key, nil)
	}
	return batch.Set(key, appendRate(nil, c), nil)
}

// appendRateKey names whose rate it is: the topic, and last the key.
func appendRateKey(b []byte, k store.LimitKey) []byte {
	b = append(appendPrefix(b, 0, tableLimits), limitRate)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(k.Topic))), k.Topic...)
	return append(b, k.Key...)
}

func decodeRateKey(b []byte) (k store.LimitKey, ok bool) {
	in := input{b: b[prefixLen:]}
	if in.byte() != limitRate {
		return k, false
	}
	if length := in.bytes(2); len(length) == 2 {
		k.Topic = string(in.bytes(uint64(binary.BigEndian.Uint16(length))))
	}
	k.Key = string(in.b)
	return k, !in.short
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

// readLimits reads the rates, and gives holds their permits. A rate that cannot be read
// is as if it had rested.
func (s *Store) readLimits() error {
	s.limits.table = limit.NewTable()
	lower, upper := appendPrefix(nil, 0, tableLimits), appendPrefix(nil, 0, tableLimits+1)
	if err := s.scan(lower, upper, func(key, value []byte) (bool, error) {
		if len(key) > prefixLen && key[prefixLen] == limitPermit {
			return true, s.db.Delete(key, pebble.NoSync)
		}
		var c limit.Change
		var ok bool
		if c.Key, ok = decodeRateKey(key); ok && decodeRate(value, &c) {
			s.limits.table.Load(c)
		} else {
			s.log.Error("unreadable rate: it begins anew")
		}
		return true, nil
	}); err != nil {
		return err
	}
	return s.readPermits()
}
