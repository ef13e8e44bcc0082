package sealstore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// missedFor is for how long a key that was not found is missing, unless it is met again.
const missedFor = time.Minute

// missing are keys that were looked for in vain.
type missing struct {
	mu    sync.Mutex
	last  map[KeyID]time.Time // guarded by mu; when each was met
	asked map[KeyID]time.Time // guarded by mu; when the records were read for it
	count int64               // guarded by mu; how often any was met
}

// due reports whether the records are to be read again for a key, and is told of it.
func (m *missing) due(id KeyID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.asked[id]; ok && now.Sub(at) < lookPause {
		return false
	}
	if m.asked == nil {
		m.asked = make(map[KeyID]time.Time)
	}
	m.asked[id] = now
	return true
}

// note reports whether the key was not missing before.
func (m *missing) note(id KeyID, now time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = make(map[KeyID]time.Time)
	}
	m.count++
	m.trim(now)
	_, known := m.last[id]
	m.last[id] = now
	return !known
}

// trim forgets keys that were not met for a while.
func (m *missing) trim(now time.Time) {
	for id, at := range m.last {
		if now.Sub(at) > missedFor {
			delete(m.last, id)
			delete(m.asked, id)
		}
	}
}

// ids are those of the keys that are missing, in order.
func (m *missing) ids(now time.Time) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trim(now)
	for id := range m.last {
		ids = append(ids, id.String())
	}
	slices.Sort(ids)
	return ids
}

func (m *missing) times() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Ready returns an error while data keys are missing, which names them. In a process without master keys it goes on to
// do so once it has met one.
func (k *Keys) Ready() error {
	if len(*k.closed.Load()) > 0 {
		return errKeyless
	}
	ids := k.missing.ids(time.Now())
	ids = slices.DeleteFunc(ids, func(name string) bool {
		id, err := parseKeyID(name)
		return err == nil && (*k.known.Load())[id] != nil // it came
	})
	if len(ids) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnknownKey, strings.Join(ids, ", "))
}

// Known is how many data keys are known.
func (k *Keys) Known() int { return len(*k.known.Load()) }

// Missed is how often something could not be opened for want of a key.
func (k *Keys) Missed() int64 { return k.missing.times() }

// Corrupt is how often something did not open with its key.
func (k *Keys) Corrupt() int64 { return k.corrupt.Load() }
