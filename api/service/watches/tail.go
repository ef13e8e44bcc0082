package watches

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/position"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	tailBusy = 20 * time.Millisecond  // pause between looks while there is something new
	tailIdle = 250 * time.Millisecond // the longest pause
	tailPage = 1000                   // changes of a shard in one look
	tailKept = 2000                   // changes of a shard that are kept for watchers, at least
)

// tails are the ends of the logs of the topics that are watched at this node.
type tails struct {
	mu      sync.Mutex
	byTopic map[string]*tail // guarded by mu
}

// tail reads what is new in the logs of a topic's shards, once for all watchers of this
// node. It keeps the latest changes only: whoever is farther behind reads the store at
// its own pace, so one that is slow costs the others nothing. It owns one goroutine,
// from its first watcher to its last.
type tail struct {
	logs  *logs
	topic string
	users int // guarded by tails.mu
	stop  context.CancelFunc
	done  chan struct{}

	mu     sync.Mutex
	shards map[int]stretch // guarded by mu, as is the rest
	end    int             // above the numbers of the topic's shards; 0: not known yet

	servers uint64 // from which they were read

	indexed store.IndexSet // attributes that changes tell, once end is known
	more    chan struct{}  // closed when there is more to see
	err     *problem.Error // why it ended
}

// stretch is a part of a log: the changes behind the position first.
type stretch struct {
	first   int64
	changes []store.Change // what is read of it is never written again
}

func (s *stretch) last() int64 { return s.first + int64(len(s.changes)) }

// join returns the tail of a topic, which begins with its first watcher. Leave ends that.
func (ts *tails) join(l *logs, topic string) *tail {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byTopic[topic]
	if t == nil || t.failure() != nil {
		ctx, cancel := context.WithCancel(context.Background())
		t = &tail{logs: l, topic: topic, stop: cancel, done: make(chan struct{}), shards: make(map[int]stretch), more: make(chan struct{})}
		if ts.byTopic == nil {
			ts.byTopic = make(map[string]*tail)
		}
		ts.byTopic[topic] = t
		go t.follow(ctx)
	}
	t.users++
	return t
}

func (ts *tails) leave(t *tail) {
	ts.mu.Lock()
	t.users--
	last := t.users == 0
	if last && ts.byTopic[t.topic] == t {
		delete(ts.byTopic, t.topic)
	}
	ts.mu.Unlock()
	if last {
		t.stop()
		<-t.done
	}
}

// follow looks for changes until ctx ends or that fails.
func (t *tail) follow(ctx context.Context) {
	defer close(t.done)
	pause := tailBusy
	for ctx.Err() == nil {
		found, err := t.look(ctx)
		switch {
		case err != nil:
			t.fail(err)
			return
		case found == tailPage:
			continue
		case found > 0:
			pause = tailBusy
		default:
			pause = min(2*pause, tailIdle)
		}
		rest(ctx, pause)
	}
}

// rest returns after d, or when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// look reads the logs once, and returns the most changes that it found in one.
func (t *tail) look(ctx context.Context) (most int, e *problem.Error) {
	open, e := t.logs.node.Topics().Open(ctx, t.topic, false)
	if e != nil {
		return 0, e
	}
	config := open.Config()
	shards := place.Shards(config)
	servers := t.logs.servers(ctx, shards)
	t.readFrom(servers)
	reads := make([]store.LogRead, len(shards))
	for i, shard := range shards {
		known, ok := t.at(shard.N)
		reads[i] = store.LogRead{Shard: shard, After: known.last(), Limit: tailPage}
		if !ok {
			reads[i].Limit = 0 // of what was before, watchers read as much as they need
		}
	}
	pages, err := t.logs.changes(ctx, reads)
	if err != nil {
		return 0, problem.FromStore(err)
	}
	if t.logs.servers(ctx, shards) != servers {
		return tailPage, nil // whose pages these are is not known: look again
	}
	for i := range pages {
		if !pages[i].Watched {
			return 0, errNotWatched(t.topic)
		}
		if pages[i].Last < reads[i].After { // the store is back in a state of before
			return 0, errCursorExpired()
		}
		most = max(most, len(pages[i].Changes))
	}
	t.takeIn(config, reads, pages)
	return most, nil
}

// readFrom forgets what was read from other servers: watchers verify where they are, and read what these have.
func (t *tail) readFrom(servers uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers != servers {
		t.servers, t.end = servers, 0
		clear(t.shards)
	}
}

// at returns what is kept of a shard, if anything was read of it.
func (t *tail) at(n int) (stretch, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.shards[n]
	return s, ok
}

// TakeIn keeps what was read, and wakes the watchers if that is anything new.
func (t *tail) takeIn(config *store.Topic, reads []store.LogRead, pages []store.LogPage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := len(t.shards) != len(reads)
	t.end, t.indexed = config.End(), config.Indexed
	for n := range t.shards {
		if !slices.ContainsFunc(reads, func(r store.LogRead) bool { return r.Shard.N == n }) {
			delete(t.shards, n)
		}
	}
	for i, r := range reads {
		page := &pages[i]
		known, ok := t.shards[r.Shard.N]
		switch {
		case !ok || page.Gap: // watchers find the gap where they are
			known = stretch{first: page.Last}
			fresh = true
		case len(page.Changes) > 0:
			known.changes = append(known.changes, page.Changes...)
			fresh = true
		}
		if over := len(known.changes) - tailKept; over > tailKept {
			known = stretch{known.first + int64(over), slices.Clone(known.changes[over:])}
		}
		t.shards[r.Shard.N] = known
	}
	if fresh {
		t.wake()
	}
}

// wake wakes the watchers. The caller holds mu.
func (t *tail) wake() {
	close(t.more)
	t.more = make(chan struct{})
}

func (t *tail) fail(e *problem.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = e
	t.wake()
}

func (t *tail) failure() *problem.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// news is what a tail has for a watcher.
type news struct {
	changes map[int][]store.Change // by shard, behind its positions
	behind  []int                  // shards where it is too far back: it reads the store
	gone    []int                  // shards that the topic has no more
	more    chan struct{}          // closed when there is more

	known   bool           // what follows is known by now
	servers uint64         // from which the changes were read
	indexed store.IndexSet // by the topic
}

// since returns what came behind the positions of a watcher; those of shards that it
// does not know begin at 0.
func (t *tail) since(p position.Set) (news, *problem.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return news{}, t.err
	}
	n := news{changes: make(map[int][]store.Change), more: t.more, known: t.end > 0, servers: t.servers, indexed: t.indexed}
	for shard, known := range t.shards {
		switch at := p[shard].Position; {
		case at < known.first:
			n.behind = append(n.behind, shard)
		case at < known.last():
			n.changes[shard] = known.changes[at-known.first:]
		}
	}
	for shard := range p {
		if _, ok := t.shards[shard]; !ok && shard < t.end {
			n.gone = append(n.gone, shard)
		}
	}
	return n, nil
}
