package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// marks are the idempotency keys of a shard.
type marks struct{ *transaction }

// get returns what stands under a key, nil when nothing does.
func (k marks) get(key string) (m *keyMark, err error) {
	err = k.dir.Read(appendMarkKey(nil, k.sh.number, key), func(b []byte) (err error) {
		m, err = decodeMark(b)
		return err
	})
	return m, err
}

// keyHolder is the task that has a key.
type keyHolder struct {
	entry
	found
	state store.State
	phase life.Phase
}

func (k marks) holder(m *keyMark) (h keyHolder, err error) {
	if h.entry, h.found, err = k.find(m.id); err != nil || h.found == absent {
		return h, err
	}
	h.state, h.phase = h.stateAt(k.ms), h.entry.phase(h.found)
	if k.sh.holds.get(m.id) != nil {
		h.state, h.phase = store.StateRunning, life.Running
	}
	return h, nil
}

// taken reports whether a key is not free.
func (k marks) taken(m *keyMark, h *keyHolder) bool {
	return life.KeyTaken(h.phase, m.until, k.ms)
}

func (k marks) put(key string, m *keyMark) error {
	k.value = m.append(k.value[:0])
	if err := k.set(appendMarkKey(nil, k.sh.number, key), k.value); err != nil {
		return err
	}
	return k.set(appendLookKey(nil, k.sh.number, m.look, key), nil)
}

// TrimKeys forgets keys that are free again.
func (s retention) TrimKeys(ctx context.Context, name store.Shard, limit int) (int, error) {
	var looked int
	_, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		looked, err = marks{t}.trim(limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return looked, nil
}

// trim looks at keys whose time has come, and forgets those that are free.
func (k marks) trim(limit int) (looked int, err error) {
	if limit <= 0 || k.sh.number == 0 {
		return 0, nil
	}
	var keys []string
	var looks []store.Millis
	start := append(appendPrefix(nil, k.sh.number, tableKeys), partLooks)
	err = k.dir.Scan(start, appendLookKey(nil, k.sh.number, k.ms+1, ""), func(key, _ []byte) (bool, error) {
		if rest := key[len(start):]; len(rest) >= 8 {
			keys, looks = append(keys, string(rest[8:])), append(looks, millisAt(rest))
		}
		return len(keys) < limit, nil
	})
	for i, key := range keys {
		if err == nil {
			err = k.lookAt(key, looks[i])
		}
	}
	return len(keys), err
}

func (k marks) lookAt(key string, look store.Millis) error {
	if err := k.remove(appendLookKey(nil, k.sh.number, look, key), true); err != nil {
		return err
	}
	m, err := k.get(key)
	if err != nil || m == nil || m.look != look {
		return err
	}
	h, err := k.holder(m)
	if err != nil {
		return err
	}
	if !k.taken(m, &h) {
		return k.remove(appendMarkKey(nil, k.sh.number, key), true)
	}
	m.look = store.KeyLook(k.ms, m.due)
	return k.put(key, m)
}

// hasKeys reports whether there is a mark.
func (s *taskReader) hasKeys(sh *shard) (has bool, err error) {
	err = s.dir.Scan(appendPrefix(nil, sh.number, tableKeys), appendPrefix(nil, sh.number, tableKeys+1), func(_, _ []byte) (bool, error) {
		has = true
		return false, nil
	})
	return has, err
}
