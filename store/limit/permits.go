package limit

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Permits are the permits of one key and the nodes that wait for one.
type Permits struct {
	until   map[store.Token]store.Millis
	soonest store.Millis // none ends before
	line    line
}

// Acquire gives permits at a moment.
func (p *Permits) Acquire(q store.Acquire, now time.Time) (got store.Acquired) {
	p.expire(store.Millis(now.UnixMilli()))
	p.line.forget(now)
	free := q.Max - len(p.until) - p.line.before(q.Node)
	for _, h := range q.Holders {
		if _, has := p.until[h]; !has {
			if free <= 0 {
				break
			}
			free--
		}
		p.Move(h, q.Until)
		got.N++
	}
	p.queue(q, got.N, now)
	got.InUse = len(p.until)
	if len(q.Holders) == 0 && q.Node == "" {
		got.Next = p.next()
	}
	return got
}

// expire ends the permits whose time is over. It looks at all of them, but not before
// one can have ended.
func (p *Permits) expire(now store.Millis) {
	if len(p.until) == 0 || now < p.soonest {
		return
	}
	for holder, until := range p.until {
		if until <= now {
			delete(p.until, holder)
		}
	}
	p.soonest = p.next()
}

// next is when the first permit ends by itself, 0 when there is none.
func (p *Permits) next() (next store.Millis) {
	for _, until := range p.until {
		if next == 0 || until < next {
			next = until
		}
	}
	return next
}

// queue gives a node that did not get all it asked for its turn, behind the others
// when it got something.
func (p *Permits) queue(q store.Acquire, got int, now time.Time) {
	if q.Node == "" {
		return
	}
	i := p.line.place(q.Node)
	if i >= 0 && got == 0 && len(q.Holders) > 0 {
		p.line.places[i].seen = now
		return
	}
	p.line.leave(q.Node)
	if got < len(q.Holders) {
		p.line.join(q.Node, now)
	}
}

// Move makes a permit last until a moment.
func (p *Permits) Move(holder store.Token, until store.Millis) {
	if p.until == nil {
		p.until = make(map[store.Token]store.Millis)
	}
	if len(p.until) == 0 || until < p.soonest {
		p.soonest = until
	}
	p.until[holder] = until
}

// Free ends a permit, and returns who waits.
func (p *Permits) Free(holder store.Token, now time.Time) (waiting []string) {
	delete(p.until, holder)
	p.line.forget(now)
	for _, place := range p.line.places {
		waiting = append(waiting, place.name)
	}
	return waiting
}

// Idle reports whether there is nothing to know of the key.
func (p *Permits) Idle() bool { return len(p.until)+len(p.line.places) == 0 }
