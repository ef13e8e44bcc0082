package checker

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// backlog is a topic whose tasks were held in an order, each in a millisecond of its own:
// lanes are "priority key weight".
func (p *tape) backlog(order ...[]string) {
	p.put(ledger.Event{Kind: ledger.Topic, HoldMS: 1000, Ageing: 10, KeepMS: 1})
	n := 0
	for _, part := range order {
		for _, lane := range part {
			n++
			id := fmt.Sprint("b", n)
			e := ledger.Event{Op: ledger.Enqueue, Task: id, Sum: "s", Weight: 1}
			_, _ = fmt.Sscan(lane, &e.Priority, &e.Lane, &e.Weight)
			p.at(0).call(e, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
			p.at(5000).put(ledger.Event{Kind: ledger.Found, Task: id, State: "done", History: []ledger.Attempt{{Number: 1, Started: epoch + int64(n), Outcome: "released"}}})
			p.at(1000 + int64(n)).put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s"})
			p.call(ledger.Event{Op: ledger.Release, Task: id, Token: id}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
		}
	}
	p.put(ledger.Event{Kind: ledger.Ordered, Cap: 4})
}

// lane is n tasks of a lane, between each of which go some others.
func lane(n int, lane string, between ...string) (all []string) {
	for range n {
		all = append(append(all, lane), between...)
	}
	return all
}

func TestCheckerFindsWrongTurns(t *testing.T) {
	high, low := "9 - 1", "0 - 1"
	playScenes(t, []scene{
		{"the high ones first", func(p *tape) { p.backlog(lane(50, high), lane(50, low)) }, ""},
		{"the high ones first, but for the oldest", func(p *tape) {
			p.backlog(lane(9, high), lane(1, low), lane(9, high), lane(1, low), lane(9, high), lane(1, low), lane(9, high), lane(40, low))
		}, ""},
		{"too many low ones before", func(p *tape) { p.backlog(lane(10, low), lane(50, high), lane(40, low)) }, verdict.Overtaken},
		{"some too many before the last one", func(p *tape) { p.backlog(lane(49, high), lane(12, low), lane(1, high), lane(40, low)) }, verdict.Overtaken},
		{"in turn", func(p *tape) { p.backlog(lane(20, "5 a 1", "5 b 1"), lane(60, "5 a 1")) }, ""},
		{"one before the other", func(p *tape) { p.backlog(lane(60, "5 a 1"), lane(20, "5 b 1")) }, verdict.Overtaken},
		{"as they weigh", func(p *tape) { p.backlog(lane(20, "5 a 3", "5 a 3", "5 a 3", "5 b 1"), lane(60, "5 b 1")) }, ""},
		{"more than it weighs", func(p *tape) { p.backlog(lane(20, "5 a 1", "5 a 1", "5 a 1", "5 a 1", "5 b 1")) }, verdict.Overtaken},
		{"a backlog that nobody vouches for", func(p *tape) {
			p.backlog(lane(10, low), lane(50, high))
			p.events = p.events[:len(p.events)-1]
		}, ""},
	})
}
