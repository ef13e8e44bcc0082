package actors

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// forgotten is what a node knew when its store had forgotten the node: the store was emptied, or set back to
// before the node began.
type forgotten struct {
	mu     sync.Mutex
	at     time.Time              // when that was found last, zero: never; guarded by mu
	topics map[string]store.Topic // that nobody has made again; guarded by mu
	closed map[string]closedTopic // that were not in the store a moment ago; guarded by mu
}

// closedTopic is a topic that was taken for deleted.
type closedTopic struct {
	store.Topic
	at time.Time
}

// noticed is within which time a node finds that the store has forgotten it, once a topic was not there.
const noticed = 10 * time.Second

// close keeps a topic that is not in the store, as it may turn out that nothing is.
func (f *forgotten) close(t store.Topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed == nil {
		f.closed = make(map[string]closedTopic)
	}
	maps.DeleteFunc(f.closed, func(_ string, c closedTopic) bool { return time.Since(c.at) > noticed })
	f.closed[t.Name] = closedTopic{t, time.Now()}
}

// keep keeps what the node knows of its open topics: who uses one next makes it again as it was.
func (f *forgotten) keep(s *Topics) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = time.Now()
	if f.topics == nil {
		f.topics = make(map[string]store.Topic)
	}
	know := func(t store.Topic) {
		t.First, t.Former, t.Version, t.Limits.Namespace = 0, [store.MaxFormer]store.Span{}, 0, 0
		f.topics[t.Name] = t
	}
	for _, c := range f.closed {
		if time.Since(c.at) <= noticed {
			know(c.Topic)
		}
	}
	clear(f.closed)
	s.Each(func(ref *Topic) { know(*ref.shared.Current.Load()) })
	s.rt.Log.Error("the store knows nothing of this node any more: it was emptied, or set back to before the node started; what it had is gone unless it is brought back from a copy",
		"topics_known", len(f.topics))
}

// asItWas is a topic that is made on first use: as the node knew it, if the store has forgotten it, and else as it is.
func (f *forgotten) asItWas(fresh store.Topic) store.Topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, known := f.topics[fresh.Name]
	if !known {
		return fresh
	}
	t.Life = fresh.Life
	return t
}

// drop says that a topic is there again, and reports whether it was forgotten.
func (f *forgotten) drop(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.topics[name]
	delete(f.topics, name)
	return known
}

// text says that the store has forgotten the node, and what to do; empty: it has not.
func (f *forgotten) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() {
		return ""
	}
	return fmt.Sprintf("at %s the store knew nothing of this node any more: it was emptied, or set back to before the node started. Its tasks, schedules and topics are gone unless it is brought back from a copy; restart the node when that is done, or accepted",
		f.at.UTC().Format(time.RFC3339))
}

// Warnings are what is wrong about how a node stands to its store and its fleet.
func Warnings(s *Node) (all []string) {
	for _, text := range []string{s.rt.Fleet.UnseenText(), s.topics.forgotten.text()} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}
