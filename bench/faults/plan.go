package faults

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

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

// usualMix is what every round has unless its fault is about one of them.
func usualMix() Mix {
	return Mix{Delete: 40, Reschedule: 40, Nack: 40, Retry: 20, Release: 20, Permanent: 5, Poison: 5, Slow: 10, Twice: 20, Edit: 80, Key: 30, Slack: 50, Bulk: 40}
}

// withoutRetries is the mix without tasks that are given back, or whose hold runs out.
func (m Mix) withoutRetries() Mix {
	m.Nack, m.Retry, m.Release, m.Poison, m.Slow = 0, 0, 0, 0, 0
	return m
}

// fate is what happens to a task, decided by the seed and its number alone.
type fate int

const (
	ordinary fate = iota
	deleted
	rescheduled
	nacked
	retried
	releasedOnce
	permanent
	poisoned
	slow
	twice
	edited
)

// draw returns a number that only depends on the seed, the task and what it is for.
func draw(seed uint64, id, purpose string) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	h := xxhash.New()
	_, _ = h.Write(b[:])
	_, _ = h.WriteString(id)
	_, _ = h.WriteString(purpose)
	return h.Sum64()
}

// fateOf picks the fate of a task.
func (m Mix) fateOf(seed uint64, id string) fate {
	n := int(draw(seed, id, "fate") % 1000)
	for _, f := range []struct {
		fate
		share int
	}{
		{deleted, m.Delete},
		{rescheduled, m.Reschedule},
		{nacked, m.Nack},
		{retried, m.Retry},
		{releasedOnce, m.Release},
		{permanent, m.Permanent},
		{poisoned, m.Poison},
		{slow, m.Slow},
		{twice, m.Twice},
		{edited, m.Edit},
	} {
		if n < f.share {
			return f.fate
		}
		n -= f.share
	}
	return ordinary
}

// planned is a task of the plan.
type planned struct {
	id      string
	topic   string
	send    time.Duration // from the start of the run
	due     time.Duration
	fate    fate
	change  time.Duration // when it is deleted, moved or sent again
	moved   time.Duration // the new due time of a rescheduled task
	payload []byte
	edits   []plannedEdit
	ends    []plannedEnd
	slack   time.Duration // within which the server may choose the due time

	priority int
	fairness string // its key
	key      string // under which it has a rate or a cap
	group    string // with which it is changed, see bulkOf; empty: alone
}

// delays are how long tasks wait: a few not at all, most up to some seconds, and a
// tenth until one of few instants, all together.
func delays(r *rand.Rand, send time.Duration) time.Duration {
	switch n := r.IntN(100); {
	case n < 5:
		return send
	case n < 15:
		return (send + 1700*time.Millisecond).Truncate(time.Second / 2)
	default:
		return send + 300*time.Millisecond + time.Duration(r.Int64N(int64(2200*time.Millisecond)))
	}
}

// makePlan decides everything about the tasks that a producer sends.
func makePlan(c *partyConfig) []planned {
	r := rand.New(rand.NewPCG(c.Seed, draw(c.Seed, c.Name, "plan")))
	n := int(c.Rate * c.For.Seconds())
	tasks := make([]planned, 0, n+c.Herd)
	for i := range n {
		t := planned{id: fmt.Sprintf("%s-%d", c.Name, i), send: c.For * time.Duration(i) / time.Duration(max(n, 1))}
		t.due = delays(r, t.send)
		t.topic = topicOf(c.Seed, t.id)
		if name := bulkOf(c, i); name != "" {
			t.id, t.topic, t.group = fmt.Sprintf("%s%d", name, i), plain, name
		}
		t.complete(r, c)
		tasks = append(tasks, t)
	}
	for i := range c.Herd {
		t := planned{id: fmt.Sprintf("%s-h%d", c.Name, i), topic: plain, due: c.HerdAt}
		t.payload = payload(r, 64)
		tasks = append(tasks, t)
	}
	slices.SortStableFunc(tasks, func(a, b planned) int { return cmp.Compare(a.send, b.send) })
	return tasks
}

// complete decides what else becomes of a task. Only those that wait long enough are
// changed while they do.
func (t *planned) complete(r *rand.Rand, c *partyConfig) {
	t.fate = c.Mix.fateOf(c.Seed, t.id)
	t.payload = payload(r, 16+r.IntN(500))
	if n := draw(c.Seed, t.id, "lane"); n%3 == 0 {
		t.priority, t.fairness = int(n/3%10), fmt.Sprint("tenant ", n/30%5)
	}
	if t.topic != plain {
		t.key = customer(draw(c.Seed, t.id, "key"))
	}
	if t.topic == kept {
		t.planEnds(r, c)
	}
	if draw(c.Seed, t.id, "slack")%1000 < uint64(c.Mix.Slack) {
		t.slack = 500 * time.Millisecond
	}
	wait := t.due - t.send
	switch t.fate {
	case deleted, rescheduled, twice:
		if wait < 500*time.Millisecond {
			t.fate = ordinary
			return
		}
		t.change = t.send + time.Duration(r.Int64N(int64(wait)*5/4)) // a fifth of them too late
		t.moved = t.change + 200*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))
	case edited:
		t.planEdits(r)
	}
}

func payload(r *rand.Rand, n int) []byte {
	b := make([]byte, n, n+8)
	for at := 0; at < n; at += 8 {
		binary.BigEndian.PutUint64(b[at:at+8], r.Uint64()) // the last one into the spare capacity
	}
	return b
}
