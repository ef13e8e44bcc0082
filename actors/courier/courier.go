package courier

import (
	"context"
	"log/slog"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

const (
	batch = 256 // parcels that are read at a time
	pages = 16  // of a round
)

// Courier hands on what lies in the out-box of a shard, one round at a time. Its functions are
// safe for concurrent use.
type Courier struct {
	ID      store.Shard
	Store   store.Cells
	Tasks   Tasks
	Counts  func(ctx context.Context, shards []store.Shard) ([]store.Stats, error)  // of any number of shards
	TopicOf TopicOf                                                                 // as the node knows it
	Stored  StoredTopic                                                             // as the store has it
	Resolve func(ctx context.Context, call func() error) (repeated bool, err error) // repeats a call of unknown outcome
	Now     func() store.Millis                                                     // by the shard's clock
	Log     *slog.Logger
}

// TopicOf returns what a topic is. With create it is made where enqueues do that.
type TopicOf func(ctx context.Context, name string, create bool) (*store.Topic, *problem.Error)

// StoredTopic returns what the store says of a topic. The node may not know yet that it has other shards:
// whoever is added to one of before is refused there, but what looks for something that is in one of
// those would not find it.
type StoredTopic func(ctx context.Context, name string) (*store.Topic, *problem.Error)

// Tasks is the role of the store for tasks where others of their keys may be.
type Tasks interface {
	store.Reader
	AddKeyed(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error)
}

// Start is what a round begins with.
type Start struct {
	Fence store.Fence  // of the claim
	Topic *store.Topic // of the shard
	After int64        // number of the parcel behind which it begins
}

// Outcome is what a round came to. What it did before it failed is in it, too.
type Outcome struct {
	Made    []Made
	Told    []fleet.Committed
	Refused int   // tasks that are kept as undeliverable
	After   int64 // where the next round goes on; 0: this one came to the end
	Waits   bool  // some wait for their topic
	Err     error
}

// Made are tasks that one store call made pending.
type Made struct {
	Shard store.Shard
	Seq   int64
	Tasks []store.Entry
}

// Round hands on what there is.
func (c *Courier) Round(ctx context.Context, from Start) *Outcome {
	r := &round{
		Courier: c, Start: from,
		topics: make(map[string]*destination), tallies: make(map[store.Shard]*tally), ends: make(map[store.Shard]*tally),
	}
	r.out.Err = r.run(ctx)
	return &r.out
}

// round is one round.
type round struct {
	*Courier
	Start
	topics  map[string]*destination
	tallies map[store.Shard]*tally // of tasks
	ends    map[store.Shard]*tally // of what is for workflows
	from    uint64                 // the server that the parcels were read from, see store.Commit
	out     Outcome
}

func (r *round) run(ctx context.Context) error {
	r.out.After = r.After
	for range pages {
		r.from = r.Store.Server(ctx, r.ID)
		parcels, err := r.Store.Parcels(ctx, r.ID, store.OutBox, r.out.After, batch)
		if err != nil {
			return err
		}
		if len(parcels) == 0 {
			r.out.After = 0
			return nil
		}
		if err := r.handOn(ctx, parcels); err != nil {
			return err
		}
		r.out.After = parcels[len(parcels)-1].Number
	}
	return nil
}

// handOn delivers parcels, and forgets those that have arrived.
func (r *round) handOn(ctx context.Context, parcels []store.Parcel) error {
	var arrived []int64
	byTopic, order := make(map[string][]store.Parcel), []string(nil)
	for i := range parcels {
		p := &parcels[i]
		if !sent.Crosses(p) {
			continue
		}
		if byTopic[p.Topic] == nil {
			order = append(order, p.Topic)
		}
		byTopic[p.Topic] = append(byTopic[p.Topic], *p)
	}
	var failed error
	for _, topic := range order {
		numbers, err := r.toTopic(ctx, topic, byTopic[topic])
		arrived = append(arrived, numbers...)
		if err != nil {
			failed = err
			break
		}
	}
	if len(arrived) > 0 {
		if _, err := r.commit(ctx, r.ID, r.Topic.Life, &r.Fence, store.Commit{Drop: arrived}); err != nil {
			return err
		}
	}
	return failed
}

// committed is what one commit came to.
type committed struct {
	store.CommitResult
	stamp store.Stamp
}

// commit makes one commit, and repeats that while it is not known what became of it. Those of the
// shard itself forget parcels: another server has others under their numbers.
func (r *round) commit(ctx context.Context, s store.Shard, life uint64, f *store.Fence, c store.Commit) (done committed, err error) {
	if s == r.ID {
		c.From = r.from
	}
	_, err = r.Resolve(ctx, func() error {
		stamp, results, err := r.Store.Commit(ctx, s.For(life), f, []store.Commit{c})
		if err == nil {
			done = committed{results[0], stamp}
		}
		return err
	})
	return done, err
}

// refuse keeps a task that cannot be delivered where its ack was. The step of a workflow fails.
func (r *round) refuse(ctx context.Context, p *store.Parcel, why string) error {
	if c, isStep := workflow.Refused(p, why, r.Now()); isStep {
		return r.here(ctx, c)
	}
	c, err := sent.Refuse(p, why, r.Now())
	if err != nil {
		return err
	}
	if _, err := r.commit(ctx, r.ID, r.Topic.Life, &r.Fence, c); err != nil {
		return err
	}
	r.out.Refused++
	r.Log.Warn("task undeliverable", "topic", r.ID.Topic, "shard", r.ID.N, "task", p.To.Key(), "to", p.Topic, "err", why)
	return nil
}

// here tells a workflow of this shard what became of a parcel, and forgets that in the same commit.
func (r *round) here(ctx context.Context, c store.Commit) error {
	done, err := r.commit(ctx, r.ID, r.Topic.Life, &r.Fence, c)
	if err == nil {
		r.out.Told = append(r.out.Told, fleet.Committed{Shard: r.ID, Commit: c, Stamp: done.stamp})
	}
	return err
}
