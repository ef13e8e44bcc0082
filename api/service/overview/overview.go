package overview

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/api/service/scope"
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
	topics Topics
	recent recent
}

// Topics find topics.
type Topics struct {
	// Page lists them by name.
	Page func(ctx context.Context, size int, token string) ([]store.Topic, string, error)
	// Named returns the topic of a name, or says that there is none.
	Named func(ctx context.Context, name string) ([]store.Topic, *problem.Error)
}

// New returns the overviews of the fleet of a node.
func New(node *actors.Node, st store.Reader, topics Topics) *Overviews {
	return &Overviews{node: node, store: st, topics: topics, recent: recent{kept: make(map[Query]*Overview)}}
}

// Query is what an overview is of.
type Query struct {
	Size  int    // topics; 0: the usual number
	Token string // of the list of topics, from where on
	Topic string // only this one, when it is set

	scope string // the namespace that it is of
}

// page are the topics of an overview, and the token of the page behind them.
func (t *Topics) page(ctx context.Context, q Query) ([]store.Topic, string, error) {
	if q.Topic == "" {
		return t.Page(ctx, q.Size, q.Token)
	}
	named, e := t.Named(ctx, q.Topic)
	if e != nil {
		return nil, "", e
	}
	return named, "", nil
}

// Overview is how a page of topics and all nodes fare. It is shared: nobody may change it.
type Overview struct {
	DueFrom store.Millis // the first second of Due of topics begins
	Topics  []Topic      // by name
	Next    string       // token of the page behind it; empty on the last one
	Nodes   []Node       // by name
	Silent  []string     // nodes that did not answer in time
	Missed  bool         // a node did more, in more topics than it counts: that is in no pulse

	made      time.Time
	companion companion
}

// companion is what a caller makes of an overview, for all who get it.
type companion struct {
	once sync.Once
	kept any
}

// Companion is what a caller has made of the overview: the first time by made.
func (v *Overview) Companion(made func() any) any {
	v.companion.once.Do(func() { v.companion.kept = made() })
	return v.companion.kept
}

// Topic is how a topic fares.
type Topic struct {
	store.Topic
	Depth    metrics.Depth
	Lateness time.Duration // of the oldest ready task
	Due      []int64       // tasks that come due in each of the next seconds, as far as all are known
	Pulse    *pulse.Report // what has happened to its tasks; nil: nothing, within the hour
}

// Node is how a node fares.
type Node struct {
	fleet.Member
	Self bool
	Load *fleet.PeerStatus // nil when it did not answer in time
}

// Get returns an overview that was made within a second.
func (o *Overviews) Get(ctx context.Context, q Query) (*Overview, error) {
	if q.Size = min(cmp.Or(q.Size, pageSize), maxPage); q.Topic != "" {
		q = Query{Topic: q.Topic}
	}
	q.scope = scope.Of(ctx)
	return o.recent.get(q, func() (*Overview, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readFor) // others wait for it, too
		defer cancel()
		return o.read(ctx, q)
	})
}

func (o *Overviews) read(ctx context.Context, q Query) (*Overview, error) {
	topics, next, err := o.topics.page(ctx, q)
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
	v := &Overview{DueFrom: o.node.Clock().Millis() / second * second, Next: next, Nodes: o.ask(ctx, topics)}
	r := o.begin(v.DueFrom)
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Load == nil {
			v.Silent = append(v.Silent, n.Name)
		} else {
			r.learn(n.Load)
			v.Missed = v.Missed || n.Load.PulsesIncomplete
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
	from   store.Millis
	owned  map[store.Shard]*fleet.OwnedShard // as their owners see them
	pulses map[string]*pulse.Report          // of all nodes together
	ahead  ahead
}

func (o *Overviews) begin(from store.Millis) *reading {
	return &reading{
		Overviews: o, from: from, owned: make(map[store.Shard]*fleet.OwnedShard), pulses: make(map[string]*pulse.Report),
		ahead: ahead{store: o.store, left: mostAhead},
	}
}

// learn takes down what a node owns, and adds what it did.
func (r *reading) learn(load *fleet.PeerStatus) {
	for i := range load.Shards {
		r.owned[load.Shards[i].Shard] = &load.Shards[i]
	}
	for topic, p := range load.Pulses {
		sum := r.pulses[topic]
		if sum == nil {
			sum = new(pulse.Report)
			*sum = pulse.NewReport(r.node.Clock().Millis())
			r.pulses[topic] = sum
		}
		sum.Merge(p)
	}
}

// topic is how a topic fares whose shards have these stats.
func (r *reading) topic(ctx context.Context, t *store.Topic, stats []store.Stats) Topic {
	out := Topic{Topic: *t, Depth: metrics.DepthOf(stats), Pulse: r.pulses[t.Name]}
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
