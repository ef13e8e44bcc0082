package cells

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/audience/access"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

const (
	walkLead    = 30 * time.Second      // how far ahead of their places a walk makes tasks
	walkGather  = 10 * time.Second      // how long the next places of a shard are gathered
	walkCatchUp = 2 * time.Second       // how far ahead of their places a walk that is late makes tasks
	walkBatch   = 500                   // recipients that a step of a walk looks at, about
	walkSteps   = 4                     // steps of a walk in one look
	walkRetry   = time.Second           // pause of a walk that cannot go on
	walkRest    = 20 * time.Millisecond // how long what walks are told is gathered
	shardsOnce  = 16                    // shards of an audience that are worked on at a time
	walkCorrupt = "corrupt"             // the list of cells that cannot be read
)

var walkPace = audience.Pace{Lead: walkLead, Gather: walkGather, CatchUp: walkCatchUp}

// walker takes the walk of a run further: through the recipients whose places come soon. It
// runs within a look. What lies in the audience is read as it is; the walk and the tasks that
// a step makes are one commit.
type walker struct {
	*look
	access access.Access
	cell   store.Cell
	took   []store.Parcel // for it
	alien  []string       // ids of tasks that are not its own

	walk     *audience.Walk
	template *schedule.Template
	behind   time.Duration // of the step: how late its first place is
	went     bool          // the step went through recipients
	verdicts [audience.Verdicts]int64
}

// audienceStore is the role of the store for audiences.
type audienceStore struct {
	cellStore
	shardStore
}

type cellStore interface {
	Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error)
	Server(ctx context.Context, s store.Shard) uint64
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
}

type shardStore interface {
	Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error)
	OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error
}

// takeWalks takes all walks further that wake, or that something was told.
func (l *look) takeWalks(ctx context.Context) error {
	for _, look := range l.walks {
		l.noteGone(&look.Cell)
		w := walker{
			look: l, access: access.Access{Store: audienceStore{l.Store, l.Tasks}, Random: l.Random},
			cell: look.Cell, took: look.Parcels,
		}
		if err := w.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run takes some steps. Those that fail are made anew, on the cell as it is.
func (w *walker) run(ctx context.Context) error {
	for range walkSteps {
		if w.cell.Version == 0 {
			w.settled(w.cell.ID)
			return nil
		}
		c, err := w.step(ctx)
		if err != nil {
			return err
		}
		if len(c.Puts) == 0 {
			w.settled(w.cell.ID)
			return nil
		}
		if err := w.commitStep(ctx, &c); err != nil {
			return err
		}
	}
	if w.waits[w.cell.ID] {
		w.out.Stuck = true
	}
	return nil
}

// commitStep makes the commit of a step, and keeps the cell as it is after that.
func (w *walker) commitStep(ctx context.Context, c *store.Commit) error {
	stamp, results, err := w.commitAll(ctx, w.ID, &w.Fence, []store.Commit{*c})
	if err != nil {
		return err
	}
	r := &results[0]
	w.Metrics.CountCommit("walk", r.Status)
	made := Runs{Seq: stamp.Seq}
	switch {
	case r.Status == store.OK:
		made.fresh(c)
	case r.Status == store.Stale && schedule.Landed(c, r):
		made.known(c)
	case r.Status == store.Stale:
		w.cell = r.Cell
		return nil
	case r.Status == store.Conflict:
		w.alien = append(w.alien, r.ID)
		return nil
	default:
		w.out.Stuck = true // a sealed shard, say
		return nil
	}
	w.accepted(c, made)
	return nil
}

func (w *walker) accepted(c *store.Commit, made Runs) {
	w.settled(w.cell.ID)
	w.changed = true
	w.countStep()
	w.out.Made = append(w.out.Made, made)
	if len(c.Send) > 0 {
		w.out.Again = true // the schedule is told
	}
	put := &c.Puts[0]
	w.cell = put.Cell
	w.cell.Version = put.Next(put.If)
}

// step returns what becomes of the walk; a commit without puts when nothing does.
func (w *walker) step(ctx context.Context) (c store.Commit, err error) {
	if w.walk, err = audience.DecodeWalk(w.cell.Body); err != nil {
		w.Metrics.Corrupt.Inc()
		w.Log.Error("the walk of a run cannot be read", "topic", w.ID.Topic, "shard", w.ID.N, "cell", w.cell.ID.Key(), "err", err)
		return w.putAside(), nil
	}
	w.take()
	now := w.Now()
	w.went = false
	w.beginStep(now)
	wake, err := w.goOn(ctx, now, &c)
	if err != nil {
		return store.Commit{}, err
	}
	if w.walk.Settle() {
		if !w.went {
			return w.end(ctx)
		}
		w.walk.Phase, wake = audience.Waiting, now // what the step came to is stored first
	}
	put := store.Put{Cell: store.Cell{ID: w.cell.ID, Wake: wake, Body: w.walk.Body()}, If: w.cell.Version}
	if put.Wake == w.cell.Wake && bytes.Equal(put.Body, w.cell.Body) {
		return store.Commit{}, nil
	}
	c.Puts = []store.Put{put}
	return c, nil
}

// take takes what the walk is told: ends of its tasks, and that it is to end.
func (w *walker) take() {
	for i := range w.took {
		p := &w.took[i]
		if p.Number <= w.walk.Taken {
			continue
		}
		w.walk.Taken = p.Number
		switch e := schedule.Told(p).(type) {
		case schedule.Ended:
			w.walk.Ends[e.Outcome-schedule.Done]++
		case schedule.Requeued:
			w.walk.Ends[schedule.Failed-schedule.Done]--
		default:
			if schedule.IsCancelWalk(p) {
				w.walk.Cancel(true)
			}
		}
	}
}

// goOn begins the walk, or takes it one step further, and returns when it goes on.
func (w *walker) goOn(ctx context.Context, now store.Millis, c *store.Commit) (wake store.Millis, err error) {
	switch {
	case w.walk.Phase == audience.Over:
		return 0, nil
	case w.walk.Phase == audience.Ordered && now < w.walk.At:
		return w.walk.At, nil
	case w.walk.Phase == audience.Ordered:
		return w.begin(ctx, now)
	}
	_, at, ok := w.walk.Due(walkPace)
	switch {
	case !ok:
		return 0, nil
	case at > now:
		return at, nil
	case w.refused && w.walk.Phase == audience.Walking:
		return now.Add(walkRetry), nil
	}
	err = w.goThrough(ctx, now, c)
	if errors.Is(err, access.ErrContended) {
		return now.Add(walkRetry), nil
	}
	_, at, _ = w.walk.Due(walkPace)
	return at, err
}

// pace reads the template. How much a step makes is bounded in bytes, too.
func (w *walker) pace(ctx context.Context) (audience.Pace, error) {
	if w.template == nil {
		parts, err := w.Store.Cells(ctx, w.ID, []store.CellID{audience.PartID(w.walk.Run)})
		if err != nil {
			return audience.Pace{}, err
		}
		t, err := schedule.DecodeTemplate(parts[0].Body)
		if err != nil {
			return audience.Pace{}, err
		}
		w.template = &t
	}
	fits := store.MaxBodies / (w.template.Task.BodySize() + 1)
	pace := walkPace
	pace.Batch = max(1, min(walkBatch, fits))
	return pace, nil
}

// stretch is what a step looks at in one shard of the audience, and the leaves that it found
// there.
type stretch struct {
	audience.Stretch
	leaves []*audience.Leaf
}

// goThrough makes the tasks of the next recipients, in some shards of the audience.
func (w *walker) goThrough(ctx context.Context, now store.Millis, c *store.Commit) error {
	pace, err := w.pace(ctx)
	if err != nil {
		return err
	}
	w.went = true
	shards := w.walk.Shards(now, pace, shardsOnce)
	read := make([]stretch, len(shards))
	err = inTurn(len(shards), func(i int) (err error) {
		read[i], err = w.readStretch(ctx, shards[i], now, pace)
		return err
	})
	if err != nil {
		return err
	}
	for i := range read {
		if pace.Batch <= 0 {
			break // the rest is for the next step
		}
		tickets := w.walk.Take(read[i].Stretch, read[i].leaves, pace, timetable.FindZone)
		w.add(tickets, now, c)
		pace.Batch -= len(tickets)
	}
	return nil
}

// readStretch reads what comes next in a shard of the audience.
func (w *walker) readStretch(ctx context.Context, n int, now store.Millis, pace audience.Pace) (s stretch, err error) {
	var ids []store.CellID
	v, err := w.access.Leaves(ctx, w.audience(), n, func(d *audience.Directory) []store.CellID {
		s.Stretch = w.walk.Next(n, d, now, pace)
		ids = w.walk.Leaves(s.Stretch, d)
		return ids
	})
	if err != nil {
		return stretch{}, err
	}
	for _, id := range ids {
		s.leaves = append(s.leaves, v.Leaves[id])
	}
	return s, nil
}

// add adds what becomes of some recipients to a commit.
func (w *walker) add(tickets []audience.Ticket, now store.Millis, c *store.Commit) {
	for i := range tickets {
		t := &tickets[i]
		switch {
		case w.walk.Phase == audience.Undoing:
			c.Removes = append(c.Removes, store.Remove{ID: t.ID})
		case slices.Contains(w.alien, t.ID):
			w.walk.Ends[schedule.Removed-schedule.Done]++
		default:
			c.Adds = append(c.Adds, w.task(t, now))
		}
	}
}

func (w *walker) task(t *audience.Ticket, now store.Millis) *store.Task {
	task := w.template.Make(t.ID, t.Due, now, w.Topic)
	task.RunOf = &store.RunOf{
		Schedule: w.walk.Schedule, Occurrence: t.Occurs,
		Recipient: t.Recipient.ID, RecipientData: t.Recipient.Data,
	}
	if w.walk.Tracked {
		task.Tells = w.cell.ID
	}
	return task
}

func (w *walker) audience() *audience.Audience {
	return &audience.Audience{Name: w.walk.Audience, Life: w.walk.Life, Shards: max(1, len(w.walk.Paths))}
}

// errFullOfRuns is of an audience that too many runs go through.
var errFullOfRuns = errors.New("too many runs of an audience are open")

// begin has all shards of the audience note that the run begins: from then on it is decided
// who is a recipient. It may be repeated. A run of an audience that is gone, or of a kind
// that is none of it, is over at once.
func (w *walker) begin(ctx context.Context, now store.Millis) (wake store.Millis, err error) {
	a, err := w.access.Record(ctx, w.walk.Audience)
	if err != nil {
		return 0, err
	}
	kind, there := a.Kind(w.walk.Order.Kind)
	if kind.None = w.walk.Order.Kind == ""; a.Ended || !kind.None && !there {
		w.walk.Phase = audience.Over
		w.walk.Ends[schedule.Failed-schedule.Done]++
		return 0, nil
	}
	versions, directories := make([]int64, a.Shards), make([]*audience.Directory, a.Shards)
	err = w.eachShard(ctx, a, func(ctx context.Context, n int) error {
		return w.access.Change(ctx, a, n, func(d *audience.Directory) (c store.Commit, err error) {
			var ok bool
			run := audience.Run{ID: w.walk.Run, Topic: w.ID.Topic, Schedule: w.walk.Schedule}
			if versions[n], c, ok = d.Begin(run); !ok {
				return c, errFullOfRuns
			}
			directories[n] = d
			return c, nil
		})
	})
	if err == nil { // whoever deletes it may have looked for runs before
		_, err = w.access.Stay(ctx, a.Name)
	}
	switch {
	case errors.Is(err, errFullOfRuns), errors.Is(err, access.ErrContended), errors.Is(err, access.ErrGone):
		return now.Add(walkRetry), nil
	case err != nil:
		return 0, err
	}
	if over, err := w.takeBack(ctx, a); over || err != nil {
		return now.Add(walkRetry), err
	}
	recipients := int64(0)
	for _, d := range directories {
		recipients += d.Recipients()
	}
	w.walk.Begin(a, kind, recipients)
	for n, d := range directories {
		w.walk.BeginShard(n, versions[n], d, timetable.FindZone)
	}
	return now, nil
}

// takeBack has the audience forget that the run begins if the run is over: whoever owns the walk
// now has gone through it while this owner was paused, and nobody else would. It reports whether
// that is so.
func (w *walker) takeBack(ctx context.Context, a *audience.Audience) (over bool, err error) {
	past, err := w.access.PastRuns(ctx, a)
	if err != nil || !slices.ContainsFunc(past, func(p audience.PastRun) bool { return p.Run == w.walk.Run }) {
		return false, err
	}
	return true, w.eachShard(ctx, a, func(ctx context.Context, n int) error {
		return w.access.Change(ctx, a, n, func(d *audience.Directory) (store.Commit, error) { return d.End(w.walk.Run), nil })
	})
}

// eachShard calls do for all shards of an audience, some at a time, and returns the first
// error.
func (w *walker) eachShard(ctx context.Context, a *audience.Audience, do func(ctx context.Context, n int) error) error {
	return inTurn(a.Shards, func(n int) error { return do(ctx, n) })
}

// inTurn calls do with the numbers below n, some at a time, and returns the first error.
func inTurn(n int, do func(i int) error) error {
	errs := make([]error, n)
	for from := 0; from < n; from += shardsOnce {
		var group sync.WaitGroup
		for i := from; i < min(from+shardsOnce, n); i++ {
			group.Go(func() { errs[i] = do(i) })
		}
		group.Wait()
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// end returns the commit that removes a walk which is over, and tells its schedule. The
// audience has forgotten the run by then, and remembers what became of it.
func (w *walker) end(ctx context.Context) (store.Commit, error) {
	a, err := w.ended(ctx)
	if err != nil {
		return store.Commit{}, err
	}
	past := audience.PastRun{Topic: w.ID.Topic, Ended: w.Now(), Walk: *w.walk}
	forget := func(ctx context.Context, n int) error { return w.access.EndRun(ctx, a, n, past) }
	if a.Shards > 0 { // the first remembers that it is over before any other forgets it: see takeBack
		err = forget(ctx, 0)
	}
	if err == nil {
		err = w.eachShard(ctx, a, forget)
	}
	if err != nil && !errors.Is(err, access.ErrGone) {
		return store.Commit{}, err
	}
	return store.Commit{
		Puts: []store.Put{
			{Cell: store.Cell{ID: w.cell.ID}, If: w.cell.Version},
			{Cell: store.Cell{ID: audience.PartID(w.walk.Run)}, If: store.AnyVersion},
		},
		Send: []store.Parcel{schedule.TellEnd(w.walk.Schedule, w.walk.Run, w.walk.Outcome(), w.walk.At, w.Now())},
	}, nil
}

// ended is the audience of a walk that is over. One that did not get to begin may have been
// noted in some shards all the same; it is without shards when the audience is gone.
func (w *walker) ended(ctx context.Context) (*audience.Audience, error) {
	if w.walk.Life != 0 {
		return w.audience(), nil
	}
	return w.access.Record(ctx, w.walk.Audience)
}

// putAside has a cell that cannot be read wake nobody.
func (w *walker) putAside() store.Commit {
	c := w.cell
	c.Wake, c.List = 0, walkCorrupt
	return store.Commit{Puts: []store.Put{{Cell: c, If: c.Version}}}
}
