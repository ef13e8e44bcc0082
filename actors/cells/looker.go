package cells

import (
	"context"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/smooth"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/store"
)

// Shard is the shard whose cells are looked at, and what looks need of its node. All of it is
// safe for concurrent use.
type Shard struct {
	ID          store.Shard
	Store       store.Cells
	Tasks       Tasks
	Counts      func(ctx context.Context, shards []store.Shard) ([]store.Stats, error)  // of any number of shards
	Calendars   func(ctx context.Context) (schedule.Calendars, error)                   // that the node knows
	TopicOf     func(ctx context.Context, name string) (*store.Topic, error)            // as it is; nil: there is none
	Definitions access.Definitions                                                      // of workflows, that the node knows
	Workflows   Workflows                                                               // as looks of the node committed them
	Resolve     func(ctx context.Context, call func() error) (repeated bool, err error) // repeats a call of unknown outcome
	Now         func() store.Millis                                                     // by the shard's clock
	Random      func() float64                                                          // in [0, 1)
	Made        func(*Runs)                                                             // is told of those that are not in an Outcome; nil: they all are
	Metrics     *metrics.Schedules
	Flows       *metrics.Workflows
	Knobs       knobs.Knobs
	Log         *slog.Logger
}

// Tasks is the role of the store for what is no cell: the tasks of runs, and the shards of
// audiences.
type Tasks interface {
	store.Reader
	OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error
	RemoveDead(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Status, error)
}

// Looker looks at the cells of a shard, one look at a time.
type Looker struct {
	Shard
	smooth smooth.Smoother               // where tasks with slack went
	quiet  quietEnds                     // of schedules, as looks committed them
	warned map[store.CellID]store.Millis // walks that are behind, and when that was logged
	clock  setBack
}

// NewLooker returns the looker of a shard.
func NewLooker(s Shard) *Looker {
	s.Knobs = s.Knobs.WithDefaults()
	return &Looker{Shard: s, warned: make(map[store.CellID]store.Millis)}
}

// Start is what a look begins with.
type Start struct {
	Fence    store.Fence // of the claim
	Topic    *store.Topic
	Told     bool // the one cause is that parcels were told of
	Busy     bool // tasks are ready: what nothing hangs on is put off
	Changed  bool // others may have changed cells since the last look
	Progress Progress
	Cells    int64 // that the shard has, about
}

// Progress is how far looks have come.
type Progress struct {
	Taken int64 // parcels up to this number are with their cells
	Heard int64 // number of the last one that is known to be there

	wakes    store.Wake // behind which a look into the lead goes on
	others   store.Wake // up to which only cells wake that stay in a shard of before a reshard
	forget   int64      // parcels up to this number are to be forgotten
	putOff   int64      // those behind Taken up to this number are put off
	from     uint64     // the server that says so, see store.Stamp; no other makes what follows from it
	crowdsAt store.Millis
	lead     time.Duration // how far ahead runs are made

	whole store.Millis // when the last look began that asked when cells wake; 0: the next one is to
	next  store.Millis // when one does, as far as looks know since; 0: none does
	mixed store.Millis // when a look that was to be brief last found other parcels than for workflows

	checkAt store.Millis // when open workflows are compared with their tasks
	checked store.Wake   // behind which that goes on
}

// NotePut notes that a cell was put that wakes at a moment, between two looks.
func (p *Progress) NotePut(wake store.Millis) {
	first := earliest{p.next}
	first.note(wake)
	p.next = first.at
}

// leadOf is how far ahead runs are made: no less than without crowds.
func (p *Progress) leadOf() time.Duration { return max(p.lead, schedule.Lead) }

// over is how far looks have come on a store that may have been set back: nothing of its parcels
// is known.
func (p Progress) over() Progress {
	p.Taken, p.Heard, p.forget, p.putOff, p.wakes, p.others, p.checked = 0, 0, 0, 0, store.Wake{}, store.Wake{}, store.Wake{}
	return p
}

// anew is how far looks have come where the clock was set back: what they were to do at a moment is due.
func (p Progress) anew() Progress {
	p.wakes, p.crowdsAt, p.checkAt, p.whole = store.Wake{}, 0, 0, 0
	return p
}

// Outcome is what a look came to. What it did before it failed is in it, too.
type Outcome struct {
	Made      []Runs            // in the order of the commits
	Cancelled []fleet.EndedHold // their workers are to be told
	Told      []store.Shard     // that got parcels
	Elsewhere []fleet.Committed // in other shards
	Sent      []store.Queue     // that got messages
	Progress  Progress
	Dropped   int           // ends of tasks that Progress takes, and whose cells are gone
	Next      store.Millis  // when a cell wakes; 0: none does, or a look is to follow at once
	Again     bool          // there is more to do
	Rest      time.Duration // unless Again: what is told from now on may be gathered for so long
	Tidy      time.Duration // unless Again: there is more to do by then; 0: there is not
	Stuck     bool          // some cells could not be changed
	PutOff    bool          // nothing was done: there are only ends that nothing hangs on
	Began     store.Millis
	Repeated  bool // an answer was lost: tasks may have become pending since Began that are not in Made
	Err       error
}

// Runs are those that one commit took back and made; Known are those of which it is not known
// when they became pending.
type Runs struct {
	Seq          int64
	Gone         []string
	Fresh, Known []store.Entry
}

// fresh records a commit that was made now.
func (r *Runs) fresh(c *store.Commit) {
	r.Gone, r.Fresh = append(r.Gone, c.Removed()...), append(r.Fresh, store.EntriesOf(c.Adds)...)
}

// known records one that was made at an earlier try.
func (r *Runs) known(c *store.Commit) {
	r.Gone, r.Known = append(r.Gone, c.Removed()...), append(r.Known, store.EntriesOf(c.Adds)...)
}

// Look looks at the cells once.
func (l *Looker) Look(ctx context.Context, from Start) *Outcome {
	one := look{Looker: l, Start: from}
	return one.run(ctx)
}
