package checker

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// taken is the life of a task that is due at a time and delivered at another, and held for some.
func (p *tape) taken(id string, due, delivered, held int64, more ...func(*ledger.Event)) {
	same := func(e *ledger.Event) { e.Topic, e.Task, e.Due = "topic", id, epoch+due }
	asked := ledger.Event{Op: ledger.Enqueue, Task: id, Due: epoch + due, Sum: "s"}
	for _, do := range more {
		do(&asked)
	}
	p.at(10).call(asked, ledger.OK, "", same)
	p.at(delivered).put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 30_000, Due: epoch + due, Sum: "s", Client: "w"})
	p.at(delivered+held).call(ledger.Event{Op: ledger.Ack, Task: id, Token: id, Client: "w"}, ledger.OK, "", same)
}

// steady is a worker with room for some tasks, and tasks that come each 50 ms from 1 s to 6 s, late by some.
func (p *tape) steady(room int, late int64) {
	p.put(ledger.Event{Kind: ledger.Works, Cap: room, Client: "w"})
	for at := int64(1000); at < 6000; at += 50 {
		p.taken(fmt.Sprint("steady-", at), at, at+late, 10)
	}
}

func TestCheckerFindsWhatIsLeftLying(t *testing.T) {
	inOrder := func(e *ledger.Event) { e.Order = "k" }
	playScenes(t, []scene{
		{"beside room", func(p *tape) {
			p.steady(4, 2)
			p.taken("t", 2000, 3500, 10)
		}, verdict.Idle},
		{"for less than a second", func(p *tape) {
			p.steady(4, 2)
			p.taken("t", 2000, 3000, 10)
		}, ""},
		{"where others wait, too", func(p *tape) {
			p.steady(20, 400)
			p.taken("t", 2000, 4500, 10)
		}, ""},
		{"beside hands that are full", func(p *tape) {
			p.steady(4, 2)
			for i := range 3 {
				p.taken(fmt.Sprint("long-", i), 1500, 1500, 2000)
			}
			p.taken("t", 2000, 3510, 10)
		}, ""},
		{"beside hands that were full for some of it", func(p *tape) {
			p.steady(4, 2)
			for i := range 3 {
				p.taken(fmt.Sprint("long-", i), 1500, 1500, 1000)
			}
			p.taken("t", 2000, 3900, 10)
		}, verdict.Idle},
		{"under a cap that is reached", func(p *tape) {
			p.limited(ledger.Event{Cap: 2})
			p.steady(20, 2)
			p.taken("long", 1500, 1500, 2000)
			p.taken("t", 2000, 3510, 10)
		}, ""},
		{"under a cap that is not", func(p *tape) {
			p.limited(ledger.Event{Cap: 3})
			p.steady(20, 2)
			p.taken("long", 1500, 1500, 2000)
			p.taken("t", 2000, 3510, 10)
		}, verdict.Idle},
		{"behind others of its ordering key", func(p *tape) {
			p.steady(4, 2)
			p.taken("t", 2000, 3500, 10, inOrder)
		}, ""},
		{"just behind a fault", func(p *tape) {
			p.at(100).put(ledger.Event{Kind: ledger.Fault, Fault: "kill", Topic: "-", Task: "-"})
			p.at(200).put(ledger.Event{Kind: ledger.Healed, Fault: "kill", Topic: "-", Task: "-"})
			p.steady(4, 2)
			p.taken("t", 2000, 3500, 10)
		}, ""},
		{"by the edit of somebody", func(p *tape) {
			p.steady(4, 2)
			p.taken("t", 2000, 3500, 10)
			p.at(3000).call(ledger.Event{Op: ledger.Update}, ledger.OK, "")
		}, ""},
	})
}

func TestFewerThanSome(t *testing.T) {
	in := span{0, 100}
	for _, c := range []struct {
		all  []span
		than int
		want string
	}{
		{nil, 1, "[{0 100}]"},
		{nil, 0, "[]"},
		{[]span{{10, 20}, {15, 30}}, 1, "[{0 10} {30 100}]"},
		{[]span{{10, 20}, {15, 30}}, 2, "[{0 15} {20 100}]"},
		{[]span{{-5, 20}, {20, 300}}, 1, "[]"},
		{[]span{{-5, 20}, {300, 400}}, 1, "[{20 100}]"},
	} {
		if got := fmt.Sprint(fewer(c.all, c.than, in)); got != c.want {
			t.Errorf("fewer than %d of %v: %s, want %s", c.than, c.all, got, c.want)
		}
	}
}
