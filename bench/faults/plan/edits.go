package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
)

// Edit is a change of a task that waits, or does no more.
type Edit struct {
	At          time.Duration
	Op          ledger.Op
	Payload     []byte        // nil: stays
	Moved       time.Duration // the new due time, 0: stays
	Priority    int           // -1: stays
	Conditional bool          // on the version that was heard of last
}

// planEdits plans one to four edits of a task, half of them close to the instant at which it
// is due.
func (t *Task) planEdits(r *rand.Rand) {
	wait := t.Due - t.Send
	for range 1 + r.IntN(4) {
		e := Edit{Op: ledger.Update, Priority: -1, Conditional: r.IntN(4) == 0}
		e.At = t.Send + time.Duration(r.Int64N(int64(wait)*5/4+1))
		if r.IntN(2) == 0 {
			e.At = t.Due + time.Duration(r.Int64N(int64(40*time.Millisecond))) - 20*time.Millisecond
		}
		later := max(t.Due, e.At) + time.Duration(r.Int64N(int64(time.Second)))
		switch r.IntN(6) {
		case 0:
			e.Op = ledger.Promote
		case 1:
			e.Op, e.Moved = ledger.Reschedule, later
		case 2:
			e.Moved, e.Payload = later, payload(r, 64)
		case 3:
			e.Priority = r.IntN(10)
		default:
			e.Payload = payload(r, 64)
		}
		t.Edits = append(t.Edits, e)
	}
}

// Bulk is a call about all tasks whose ids begin alike.
type Bulk struct {
	Prefix string
	IDs    []string
	At     time.Duration
	Op     ledger.Op
	Moved  time.Duration
}

// bulkTasks is how many tasks have a call in common.
const bulkTasks = 5

// bulkOf is how the id of a task begins that is to be changed with others; empty for one that is not.
func bulkOf(c *Config, i int) string {
	name := fmt.Sprintf("%s-b%d-", c.Name, i/bulkTasks)
	if int(Draw(c.Seed, name, "bulk")%1000) >= c.Mix.Bulk {
		return ""
	}
	return name
}

// Bulks are the calls about many tasks of a plan.
func Bulks(tasks []Task) []Bulk {
	found := map[string]*Bulk{}
	for _, t := range tasks {
		cut := strings.LastIndexByte(t.ID, '-') + 1
		if strings.Count(t.ID, "-") != 2 {
			continue
		}
		b := found[t.ID[:cut]]
		if b == nil {
			b = &Bulk{Prefix: t.ID[:cut]}
			found[b.Prefix] = b
		}
		b.IDs = append(b.IDs, t.ID)
		b.At = max(b.At, t.Send+time.Duration(50+Draw(0, b.Prefix, "at")%550)*time.Millisecond) // some are due then
	}
	var all []Bulk
	for _, b := range found {
		b.Op = ledger.Delete
		if Draw(0, b.Prefix, "op")%2 == 0 {
			b.Op, b.Moved = ledger.Reschedule, b.At+time.Second
		}
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b Bulk) int { return cmp.Compare(a.Prefix, b.Prefix) })
	return all
}
