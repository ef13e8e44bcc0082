package actors

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// topicLocks has a lock for each topic that is being opened, changed or read again. Calls
// of the store are made under it, so whoever waits does so until its own context ends,
// and never for another topic. The zero value is ready.
type topicLocks struct {
	mu    sync.Mutex
	locks map[string]*topicLock // guarded by mu
}

type topicLock struct {
	turn  chan struct{} // has room for one: whoever is inside
	users int           // inside or waiting; guarded by topicLocks.mu

	looks atomic.Int64 // that have begun, see share
	last  struct {     // whoever is inside has it
		look  int64 // that was without an error, the last; 0: none
		topic store.Topic
	}
}

// Lock waits for the lock of a topic, or for the end of ctx.
func (l *topicLocks) Lock(ctx context.Context, topic string) (unlock func(), err error) {
	return l.enter(ctx, topic, l.join(topic))
}

// enter is Lock for one who has joined.
func (l *topicLocks) enter(ctx context.Context, topic string, t *topicLock) (unlock func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() {
			<-t.turn
			l.leave(topic, t)
		}, nil
	case <-ctx.Done():
		l.leave(topic, t)
		return nil, ctx.Err()
	}
}

// share calls look under the lock of a topic, or returns what it came to for another caller: a look that
// began after this one was asked for is as good. A crowd of callers that learn together of a reshard costs
// two looks, and not one each behind the other.
func (l *topicLocks) share(ctx context.Context, topic string, look func() (store.Topic, error)) (store.Topic, error) {
	t := l.join(topic)
	asked := t.looks.Load()
	unlock, err := l.enter(ctx, topic, t)
	if err != nil {
		return store.Topic{}, err
	}
	defer unlock()
	if t.last.look > asked {
		return t.last.topic, nil
	}
	n := t.looks.Add(1)
	found, err := look()
	if err == nil {
		t.last.look, t.last.topic = n, found
	}
	return found, err
}

func (l *topicLocks) join(topic string) *topicLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.locks[topic]
	if t == nil {
		t = &topicLock{turn: make(chan struct{}, 1)}
		if l.locks == nil {
			l.locks = make(map[string]*topicLock)
		}
		l.locks[topic] = t
	}
	t.users++
	return t
}

func (l *topicLocks) leave(topic string, t *topicLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.locks, topic)
	}
}
