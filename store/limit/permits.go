package limit

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Permits are the permits of one key and the nodes that wait for one.
type Permits struct {
	Until   map[store.Token]store.Millis
	waiting []waiter // the first in turn first
}

type waiter struct {
	node string
	seen time.Time // when it was refused last
}

// Acquire gives permits at a moment, and returns what ended by itself.
func (p *Permits) Acquire(q store.Acquire, now time.Time) (got store.Acquired, ended []store.Token) {
	ended = p.expire(store.Millis(now.UnixMilli()))
	p.forget(now)
	free := q.Max - len(p.Until) - p.ahead(q.Node)
	for _, h := range q.Holders {
		if _, has := p.Until[h]; !has {
			if free <= 0 {
				break
			}
			free--
		}
		p.Move(h, q.Until)
		got.N++
	}
	p.queue(q, got.N, now)
	got.InUse = len(p.Until)
	for _, until := range p.Until {
		if got.Next == 0 || until < got.Next {
			got.Next = until
		}
	}
	return got, ended
}

// expire ends the permits whose time is over.
func (p *Permits) expire(now store.Millis) (ended []store.Token) {
	for holder, until := range p.Until {
		if until <= now {
			ended = append(ended, holder)
			delete(p.Until, holder)
		}
	}
	return ended
}

// forget drops nodes that did not ask again in time.
func (p *Permits) forget(now time.Time) {
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return now.Sub(w.seen) >= store.WaitLife })
}

// ahead is how many nodes are before one in turn.
func (p *Permits) ahead(node string) int {
	if i := p.turn(node); i >= 0 {
		return i
	}
	return len(p.waiting)
}

func (p *Permits) turn(node string) int {
	return slices.IndexFunc(p.waiting, func(w waiter) bool { return w.node == node })
}

// queue gives a node that did not get all it asked for its turn, behind the others
// when it got something.
func (p *Permits) queue(q store.Acquire, got int, now time.Time) {
	if q.Node == "" {
		return
	}
	i := p.turn(q.Node)
	if i >= 0 && got == 0 && len(q.Holders) > 0 {
		p.waiting[i].seen = now
		return
	}
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	if got < len(q.Holders) {
		p.waiting = append(p.waiting, waiter{q.Node, now})
	}
}

// Move makes a permit last until a moment.
func (p *Permits) Move(holder store.Token, until store.Millis) {
	if p.Until == nil {
		p.Until = make(map[store.Token]store.Millis)
	}
	p.Until[holder] = until
}

// Free ends a permit, and returns who waits.
func (p *Permits) Free(holder store.Token, now time.Time) (waiting []string) {
	delete(p.Until, holder)
	p.forget(now)
	for _, w := range p.waiting {
		waiting = append(waiting, w.node)
	}
	return waiting
}

// Idle reports whether there is nothing to know of the key.
func (p *Permits) Idle() bool { return len(p.Until)+len(p.waiting) == 0 }
