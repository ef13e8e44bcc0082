// Package turns knows who may go before whom of a backlog whose tasks have priorities and fairness
// keys. It knows no task, and no rule of package checker.
package turns

import "fmt"

// Turn is the first attempt of a task of a backlog.
type Turn struct {
	Started  int64 // ms
	Priority int
	Lane     string
	Weight   int
}

// Overtaken says why more tasks went before the i-th than may; empty: no more did. They are in the
// order in which they started. Of lower priorities one of so many deliveries may go before it, which
// go to the task that waits for longest, and of other keys of its own those of the turns until its
// own. So many as are handed out at a time may pass each other besides.
func Overtaken(turns []Turn, i, ageing, apart int) string {
	x := turns[i]
	before, lower, own, others := 0, 0, 1, map[string]int{}
	weights := map[string]int{}
	for _, y := range turns[:i] {
		if y.Started == x.Started {
			break
		}
		before++
		switch {
		case y.Priority < x.Priority:
			lower++
		case y.Priority > x.Priority:
		case y.Lane == x.Lane:
			own++
		default:
			others[y.Lane]++
			weights[y.Lane] = max(1, y.Weight)
		}
	}
	aged := before/ageing + 1 + apart
	if lower > aged {
		return fmt.Sprintf("of priority %d, and %d tasks of lower ones went before it, of %d; it may be %d", x.Priority, lower, before, aged)
	}
	own += apart // those that went at the same time may have been before it
	weight := max(1, x.Weight)
	for lane, n := range others {
		most := ((own+weight-1)/weight+1)*weights[lane] + aged
		if n > most {
			return fmt.Sprintf("of fairness key %q, and %d tasks of %q went before it; it may be %d", x.Lane, n, lane, most)
		}
	}
	return ""
}
