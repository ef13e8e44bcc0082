package overview

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	pageSize = 50
	maxPage  = 200

	answerFor = 300 * time.Millisecond // nodes are waited for
	readFor   = 3 * time.Second        // everything may take, store included
)

// Overviews says how topics and nodes fare. It is safe for concurrent use.
type Overviews struct {
	node   *actors.Node
	store  store.Reader
	topics func(ctx context.Context, size int, token string) ([]store.Topic, string, error)
	recent recent
}

// New returns the overviews of the fleet of a node. topics lists them in pages, by name.
func New(node *actors.Node, st store.Reader, topics func(ctx context.Context, size int, token string) ([]store.Topic, string, error)) *Overviews {
	return &Overviews{node: node, store: st, topics: topics, recent: recent{kept: make(map[string]*Overview)}}
}

// Overview is how a page of topics and all nodes fare. It is shared: nobody may change it.
type Overview struct {
	DueFrom store.Millis // the first second of Due of topics begins
	Topics  []Topic      // by name
	Next    string       // token of the page behind it; empty on the last one
	Nodes   []Node       // by name
	Silent  []string     // nodes that did not answer in time

	made time.Time
}

// Topic is how a topic fares.
type Topic struct {
	store.Topic
	Depth    metrics.Depth
	Lateness time.Duration // of the oldest ready task
	Due      []int64       // tasks that come due in each of the next seconds, as far as all are known
}

// Node is how a node fares.
type Node struct {
	fleet.Member
	Self bool
	Load *fleet.PeerStatus // nil when it did not answer in time
}

// Get returns an overview that was made within a second: of size topics, 0 for the usual number, from
// a token of the list of topics on.
func (o *Overviews) Get(ctx context.Context, size int, token string) (*Overview, error) {
	size = min(cmp.Or(size, pageSize), maxPage)
	return o.recent.get(fmt.Sprint(size, " ", token), func() (*Overview, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readFor) // others wait for it, too
		defer cancel()
		return o.read(ctx, size, token)
	})
}

func (o *Overviews) read(ctx context.Context, size int, token string) (*Overview, error) {
	topics, next, err := o.topics(ctx, size, token)
	if err != nil {
		return nil, err
	}
	var shards []store.Shard
	for i := range topics {
		shards = append(shards, place.Shards(&topics[i])...)
	}
	stats, err := o.store.Stats(ctx, shards)
	if err != nil {
		return nil, problem.AsError(err)
	}
	v := &Overview{DueFrom: o.node.Clock().Millis() / second * second, Next: next, Nodes: o.ask(ctx)}
	r := reading{Overviews: o, from: v.DueFrom, owned: make(map[store.Shard]*fleet.OwnedShard), ahead: ahead{store: o.store, left: mostAhead}}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Load == nil {
			v.Silent = append(v.Silent, n.Name)
		} else {
			r.learn(n.Load)
		}
	}
	for i := range topics {
		n := len(place.Shards(&topics[i]))
		v.Topics = append(v.Topics, r.topic(ctx, &topics[i], stats[:n]))
		stats = stats[n:]
	}
	return v, nil
}

// reading is an overview that is being made.
type reading struct {
	*Overviews
	from  store.Millis
	owned map[store.Shard]*fleet.OwnedShard // as their owners see them
	ahead ahead
}

// learn takes down what a node owns.
func (r *reading) learn(load *fleet.PeerStatus) {
	for i := range load.Shards {
		r.owned[load.Shards[i].Shard] = &load.Shards[i]
	}
}

// topic is how a topic fares whose shards have these stats.
func (r *reading) topic(ctx context.Context, t *store.Topic, stats []store.Stats) Topic {
	out := Topic{Topic: *t, Depth: metrics.DepthOf(stats)}
	due := newDue(r.from)
	for i, shard := range place.Shards(t) {
		st := &stats[i]
		if st.Ready > 0 {
			out.Lateness = max(out.Lateness, r.node.Clocks().NowAt(shard).Sub(st.OldestMs))
		}
		from := due.owned(r.owned[shard], st)
		if from < due.end() {
			from = r.ahead.count(ctx, shard, from, due)
		}
		due.until = min(due.until, from)
	}
	out.Due = due.known()
	return out
}
