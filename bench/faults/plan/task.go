package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Task is a task of the plan.
type Task struct {
	ID      string
	Topic   string
	Send    time.Duration // from the start of the run
	Due     time.Duration
	Fate    Fate
	Change  time.Duration // when it is deleted, moved or sent again
	Moved   time.Duration // the new due time of a rescheduled task
	Payload []byte
	Edits   []Edit
	Ends    []End
	Slack   time.Duration // within which the server may choose the due time

	Priority int
	Fairness string // its key
	Key      string // under which it has a rate or a cap
	Group    string // with which it is changed, see bulkOf; empty: alone
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

// Tasks decides everything about the tasks that a producer sends.
func Tasks(c *Config) []Task {
	r := rand.New(rand.NewPCG(c.Seed, Draw(c.Seed, c.Name, "plan")))
	n := int(c.Rate * c.For.Seconds())
	tasks := make([]Task, 0, n+c.Herd)
	for i := range n {
		t := Task{ID: fmt.Sprintf("%s-%d", c.Name, i), Send: c.For * time.Duration(i) / time.Duration(max(n, 1))}
		t.Due = delays(r, t.Send)
		t.Topic = topicOf(c.Seed, t.ID)
		if name := bulkOf(c, i); name != "" {
			t.ID, t.Topic, t.Group = fmt.Sprintf("%s%d", name, i), Plain, name
		}
		t.complete(r, c)
		tasks = append(tasks, t)
	}
	for i := range c.Herd {
		t := Task{ID: fmt.Sprintf("%s-h%d", c.Name, i), Topic: Plain, Due: c.HerdAt}
		t.Payload = payload(r, 64)
		tasks = append(tasks, t)
	}
	slices.SortStableFunc(tasks, func(a, b Task) int { return cmp.Compare(a.Send, b.Send) })
	return tasks
}

// complete decides what else becomes of a task. Only those that wait long enough are
// changed while they do.
func (t *Task) complete(r *rand.Rand, c *Config) {
	t.Fate = c.Mix.FateOf(c.Seed, t.ID)
	t.Payload = payload(r, 16+r.IntN(500))
	if n := Draw(c.Seed, t.ID, "lane"); n%3 == 0 {
		t.Priority, t.Fairness = int(n/3%10), fmt.Sprint("tenant ", n/30%5)
	}
	if t.Topic != Plain {
		t.Key = Customer(Draw(c.Seed, t.ID, "key"))
	}
	if t.Topic == Kept {
		t.planEnds(r, c)
	}
	if Draw(c.Seed, t.ID, "slack")%1000 < uint64(c.Mix.Slack) {
		t.Slack = 500 * time.Millisecond
	}
	wait := t.Due - t.Send
	switch t.Fate {
	case Deleted, Rescheduled, Twice:
		if wait < 500*time.Millisecond {
			t.Fate = Ordinary
			return
		}
		t.Change = t.Send + time.Duration(r.Int64N(int64(wait)*5/4)) // a fifth of them too late
		t.Moved = t.Change + 200*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))
	case Edited:
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
