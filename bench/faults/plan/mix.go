package plan

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Mix says how often tasks are out of the ordinary, per mille.
type Mix struct {
	Delete     int `json:"delete"`     // deleted before they are due
	Reschedule int `json:"reschedule"` // moved before they are due
	Nack       int `json:"nack"`       // the handler fails once
	Retry      int `json:"retry"`      // it fails once and names a delay
	Release    int `json:"release"`    // it gives the task back once or twice
	Permanent  int `json:"permanent"`  // it fails for good
	Poison     int `json:"poison"`     // it panics, always
	Slow       int `json:"slow"`       // it takes longer than the hold lasts
	Twice      int `json:"twice"`      // enqueued again while it waits
	Edit       int `json:"edit"`       // edited, some times over, while it waits
	Key        int `json:"key"`        // as many idempotency keys, each enqueued several times by all producers
	Slack      int `json:"slack"`      // the server may choose when it is due
	Bulk       int `json:"bulk"`       // of groups of tasks: deleted or moved by a filter
}

// UsualMix is what every round has unless its fault is about one of them.
func UsualMix() Mix {
	return Mix{Delete: 40, Reschedule: 40, Nack: 40, Retry: 20, Release: 20, Permanent: 5, Poison: 5, Slow: 10, Twice: 20, Edit: 80, Key: 30, Slack: 50, Bulk: 40}
}

// WithoutRetries is the mix without tasks that are given back, or whose hold runs out.
func (m Mix) WithoutRetries() Mix {
	m.Nack, m.Retry, m.Release, m.Poison, m.Slow = 0, 0, 0, 0, 0
	return m
}

// Fate is what happens to a task, decided by the seed and its number alone.
type Fate int

const (
	Ordinary Fate = iota
	Deleted
	Rescheduled
	Nacked
	Retried
	ReleasedOnce
	Permanent
	Poisoned
	Slow
	Twice
	Edited
)

// Draw returns a number that only depends on the seed, the task and what it is for.
func Draw(seed uint64, id, purpose string) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	h := xxhash.New()
	_, _ = h.Write(b[:])
	_, _ = h.WriteString(id)
	_, _ = h.WriteString(purpose)
	return h.Sum64()
}

// FateOf picks the fate of a task.
func (m Mix) FateOf(seed uint64, id string) Fate {
	n := int(Draw(seed, id, "fate") % 1000)
	for _, f := range []struct {
		Fate
		share int
	}{
		{Deleted, m.Delete},
		{Rescheduled, m.Reschedule},
		{Nacked, m.Nack},
		{Retried, m.Retry},
		{ReleasedOnce, m.Release},
		{Permanent, m.Permanent},
		{Poisoned, m.Poison},
		{Slow, m.Slow},
		{Twice, m.Twice},
		{Edited, m.Edit},
	} {
		if n < f.share {
			return f.Fate
		}
		n -= f.share
	}
	return Ordinary
}
