package gather

import (
	"context"
	"sync"
)

// line is where questions wait while a call with the same key is under way: they are asked
// together once it is answered. The first one of them makes the call, and no goroutine is
// started. The zero one is ready. It is safe for concurrent use.
type line[K comparable, Q, A any] struct {
	mu   sync.Mutex
	next map[K]*group[Q, A] // by key, while a call is under way: those that wait for it, or nil
}

// group are the questions of one call. Whoever makes it reads them, and writes the answers
// before it closes done.
type group[Q, A any] struct {
	asked   []Q
	turn    chan struct{} // closed when it is to be made
	done    chan struct{}
	answers []A
	err     error
}

func newGroup[Q, A any]() *group[Q, A] {
	return &group[Q, A]{turn: make(chan struct{}), done: make(chan struct{})}
}

// ask returns the answer to one question, and false for one that the call did not get to.
// Calls have the context of the question that makes them: those of one line share one.
func (l *line[K, Q, A]) ask(ctx context.Context, key K, q Q, call func(context.Context, []Q) ([]A, error)) (a A, answered bool, err error) {
	g, n, mine := l.join(key, q)
	if mine {
		<-g.turn
		g.answers, g.err = call(ctx, g.asked)
		close(g.done)
		l.pass(key)
	}
	<-g.done
	if g.err != nil || n >= len(g.answers) {
		return a, false, g.err
	}
	return g.answers[n], true, nil
}

// join puts a question into the group that is asked next, and reports where it is there, and
// whether it is the one that makes the call.
func (l *line[K, Q, A]) join(key K, q Q) (g *group[Q, A], n int, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = make(map[K]*group[Q, A])
	}
	g, busy := l.next[key]
	if mine = g == nil; mine {
		g = newGroup[Q, A]()
	}
	if busy {
		l.next[key] = g
	} else {
		l.next[key] = nil
		close(g.turn)
	}
	g.asked = append(g.asked, q)
	return g, len(g.asked) - 1, mine
}

// pass has those make their call that waited for one, if any did.
func (l *line[K, Q, A]) pass(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.next[key]
	if g == nil {
		delete(l.next, key)
		return
	}
	l.next[key] = nil
	close(g.turn)
}
