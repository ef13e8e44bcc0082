package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

type settling struct{}

// Settling returns a context of calls that settle tasks: the topics of what comes next are created, also beyond
// the quota.
func Settling(ctx context.Context) context.Context { return context.WithValue(ctx, settling{}, true) }

// admitTopic lets a topic be created where its namespace has room. Over all nodes one at a time is created in such
// a namespace, until done.
func (s *Tenants) admitTopic(ctx context.Context, topic string) (done func(), err error) {
	namespace, _ := store.SplitName(topic)
	q := s.quotasOf(namespace)
	if q == nil || q.MaxTopics == 0 || ctx.Value(settling{}) != nil {
		return func() {}, nil
	}
	full := &s.of(namespace).TopicsFull
	if time.Now().UnixNano() < full.Load() {
		return nil, s.tooManyTopics(namespace, q.MaxTopics)
	}
	if done, err = s.alone(ctx, limitKey(namespace, "topics")); err != nil {
		return nil, problem.AsError(err)
	}
	switch room, err := s.hasRoomFor(ctx, namespace, topic, q.MaxTopics); {
	case err != nil:
		done()
		return nil, problem.AsError(err)
	case !room:
		done()
		full.Store(time.Now().Add(topicsFull).UnixNano())
		return nil, s.tooManyTopics(namespace, q.MaxTopics)
	}
	return done, nil
}

// topicsFull is for how long a namespace that had its topics is taken to have them, without a look.
const topicsFull = time.Second

// hasRoomFor reports whether a namespace may have a topic, or has it.
func (s *Tenants) hasRoomFor(ctx context.Context, namespace, topic string, most int64) (bool, error) {
	topics, err := s.store.ListTopics(ctx)
	if err != nil {
		return false, err
	}
	there := int64(0)
	for i := range topics {
		if of, _ := store.SplitName(topics[i].Name); of == namespace {
			there++
		}
	}
	return there < most || slices.ContainsFunc(topics, func(t store.Topic) bool { return t.Name == topic }), nil
}

func (s *Tenants) tooManyTopics(namespace string, most int64) *problem.Error {
	return s.overQuota(namespace, "max_topics", slowPause, "%d topics", most)
}

const (
	// aloneLasts is for how long the turn of a node that dies in it keeps others waiting. Whoever takes longer in
	// earnest may not be alone any more.
	aloneLasts = 5 * time.Second
	mostWait   = 50 * time.Millisecond // between two tries
)

// alone waits until no other caller, at any node, is alone under a key. leave lets the next one go.
func (s *Tenants) alone(ctx context.Context, key store.LimitKey) (leave func(), err error) {
	holder := store.NewTokens(1)[0]
	for wait := time.Millisecond; ; wait = min(2*wait, mostWait) {
		got, err := s.acquire(ctx, key, 1, holder, aloneLasts)
		if err != nil {
			return nil, err
		}
		if got {
			return func() { s.free(store.Permit{Key: key, Holder: holder}) }, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// acquire takes a permit for a while, and reports whether there was one.
func (s *Tenants) acquire(ctx context.Context, key store.LimitKey, most int, holder store.Token, lasts time.Duration) (bool, error) {
	var got []store.Acquired
	_, err := s.node.Resolve(ctx, func() (err error) {
		got, err = s.store.Acquire(ctx, []store.Acquire{{Key: key, Max: most, Holders: []store.Token{holder}, Until: s.after(lasts)}})
		return err
	})
	return err == nil && got[0].N == 1, err
}

// after is a moment of the store's clock.
func (s *Tenants) after(lasts time.Duration) store.Millis {
	return clock.CeilMillis(s.node.Clock().Latest().Add(lasts))
}

// freeTimeout bounds how long is tried to give a permit back. One that is not ends by itself.
const freeTimeout = 2 * time.Second

func (s *Tenants) free(p store.Permit) {
	ctx, cancel := context.WithTimeout(context.Background(), freeTimeout)
	defer cancel()
	if _, err := s.store.Free(ctx, []store.Permit{p}); err != nil {
		s.node.Log().Debug("permit not given back", "topic", p.Key.Topic, "err", err)
	}
}
