package cells

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	batch        = 256              // of pages that are looked through for one thing
	crowdEvery   = 10 * time.Second // how often many cells are looked through for crowds
	crowdedCells = 10_000           // fewer are made within the usual lead
	commitBytes  = 4 << 20          // of the commits of a look, about
	commitRounds = 4                // of a look: what fails is looked at anew
	unknownRetry = time.Second      // pause before a cell that nobody here knows is looked at again
	tidyWithin   = time.Second      // how long a parcel may lie in the in-box once it was taken
)

// look is one look at the cells of a shard.
type look struct {
	*Looker
	Start

	asOf    store.Millis // every end until then is known, by the store's clock
	wakes   []store.Wake
	parcels []store.Parcel
	behind  []store.Parcel // those that lie behind them, as far as they were read
	more    bool           // parcels lie behind them
	looks   []schedule.Look
	walks   []schedule.Look       // those at walks
	flows   []*flow               // those at workflows
	brief   bool                  // nothing was read but what is told to workflows
	first   earliest              // of the cells that a brief look came across
	home    []store.Parcel        // ends for workflows of other topics
	waits   map[store.CellID]bool // those whose cells have not taken them
	gone    map[store.CellID]bool // parcels are for cells that are not there
	refused bool
	changed bool                            // some cell was
	tallies map[store.Shard]*tally          // of other shards, as far as they were read
	handed  int64                           // number of the last parcel of the out-box that was looked at
	formers map[store.Shard]bool            // shards of before a reshard whose boxes were read
	told    map[store.CellID][]store.Parcel // what is in them
	out     Outcome
}

func (l *look) run(ctx context.Context) *Outcome {
	l.out.Began, l.out.Progress = l.Now(), l.Progress
	if l.clock.begin(l.out.Began) {
		l.Progress = l.Progress.anew()
		l.out.Progress = l.Progress
	}
	through := false
	defer func() { l.clock.end(l.Now(), through) }()
	l.Busy = l.Busy && !l.former()
	if l.Changed {
		l.quiet = quietEnds{}
	}
	if l.out.Err = l.read(ctx); l.out.PutOff {
		return &l.out
	}
	if l.out.Err == nil {
		l.out.Err = l.keep(ctx)
	}
	if l.out.Err == nil {
		l.out.Err = l.takeFlows(ctx)
	}
	if l.out.Err == nil {
		l.out.Err = l.sendHome(ctx)
	}
	if l.out.Err == nil {
		l.out.Err = l.takeWalks(ctx)
	}
	if l.out.Err == nil {
		l.finishParcels()
		l.out.Err = l.lookAhead(ctx)
	}
	if l.out.Err == nil {
		l.out.Err = flowCheck{l}.run(ctx)
	}
	if l.out.Err == nil && l.former() {
		l.out.Err = mover{l}.move(ctx)
	}
	through = l.out.Err == nil && !l.brief && l.out.Progress.wakes == store.Wake{}
	return &l.out
}

// read finds the cells to look at.
func (l *look) read(ctx context.Context) (err error) {
	if putOff, err := (quietLook{l}).read(ctx); putOff || err != nil {
		return err
	}
	if told, err := (toldLook{l}).read(ctx); told || err != nil {
		return err
	}
	to := max(l.Now().Add(l.Progress.leadOf()-schedule.Lead), l.clock.until)
	stamp, wakes, err := l.Store.Wakes(ctx, l.ID, store.WakeQuery{After: l.Progress.wakes, To: to, Limit: l.Knobs.PassBatch})
	if another := l.Progress.from != 0 && l.Progress.from != stamp.Server; another && err == nil { // it may have been set back
		l.Progress = l.Progress.over()
		l.out.Progress = l.Progress
		stamp, wakes, err = l.Store.Wakes(ctx, l.ID, store.WakeQuery{To: to, Limit: l.Knobs.PassBatch})
	}
	if err != nil {
		return err
	}
	l.wakes, l.out.Progress.Heard = wakes, stamp.In
	l.Progress.from, l.out.Progress.from = stamp.Server, stamp.Server
	l.asOf = min(l.out.Began, store.Millis(stamp.Now.UnixMilli())) // the clock here may be ahead of the store's
	if stamp.In > l.Progress.Taken {
		if err = l.readParcels(ctx); err != nil {
			return err
		}
	}
	return l.readCells(ctx)
}

// readParcels reads what lies in the in-box, for so many cells as a look takes on.
func (l *look) readParcels(ctx context.Context) (err error) {
	if l.parcels, err = l.Store.Parcels(ctx, l.ID, store.InBox, l.Progress.Taken, l.Knobs.PassInbox); err != nil {
		return err
	}
	l.more = len(l.parcels) == l.Knobs.PassInbox
	cells := make(map[store.CellID]bool)
	for i := range l.parcels {
		if cells[l.parcels[i].To] = true; len(cells) > l.batch() {
			l.parcels, l.behind, l.more = l.parcels[:i], l.parcels[i:], true
			break
		}
	}
	return nil
}

// batch is for how many cells a look takes on parcels: for more of them where most of the cells are gone.
func (l *look) batch() int {
	if l.former() {
		return moveBatch
	}
	return l.Knobs.PassBatch
}

func (l *look) readCells(ctx context.Context) error {
	var ids []store.CellID
	at := make(map[store.CellID]int)
	add := func(id store.CellID) {
		if _, there := at[id]; !there {
			at[id], ids = len(ids), append(ids, id)
		}
	}
	l.waits, l.gone = make(map[store.CellID]bool), make(map[store.CellID]bool)
	for i := range l.parcels {
		p := &l.parcels[i]
		if workflow.GoesHome(p) {
			l.home, l.waits[p.To] = append(l.home, *p), true
			continue
		}
		add(p.To)
	}
	for _, w := range l.wakes {
		add(w.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	cells, err := l.Store.Cells(ctx, l.ID, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		l.waits[id] = true
	}
	for _, c := range cells {
		l.looks = append(l.looks, schedule.Look{Cell: c, Topic: l.Topic})
	}
	for _, p := range l.parcels {
		if i, taken := at[p.To]; taken && i < len(cells) {
			l.looks[i].Parcels = append(l.looks[i].Parcels, p)
		}
	}
	for _, p := range l.behind {
		if i, taken := at[p.To]; taken && p.To.Kind() == store.CellSchedule && i < len(cells) {
			l.looks[i].Parcels = append(l.looks[i].Parcels, p) // an end decides on what is due now; the cell takes it once
		}
	}
	l.walks, l.looks = splitWalks(l.looks)
	l.flows, l.looks = splitFlows(l.looks)
	return nil
}

// splitWalks takes those at walks from looks.
func splitWalks(looks []schedule.Look) (walks, others []schedule.Look) {
	for _, look := range looks {
		if look.Cell.ID.Kind() == store.CellWalk {
			walks = append(walks, look)
		} else {
			others = append(others, look)
		}
	}
	return walks, others
}

// keep commits what becomes of the cells. Those for which that fails are looked at anew, some
// times.
func (l *look) keep(ctx context.Context) error {
	if err := l.askTopic(ctx); err != nil {
		return err
	}
	for range commitRounds {
		if err := l.forwardLost(ctx); err != nil {
			return err
		}
		commits, kept, looks, err := l.step(ctx)
		if err != nil {
			return err
		}
		if l.Progress.forget > 0 && (len(commits) > 0 || len(l.flows) == 0) { // else the commits of workflows take them along
			commits = append(commits, store.Commit{Take: l.Progress.forget})
		}
		if len(commits) == 0 {
			return nil
		}
		err = l.commit(ctx, commits, kept, looks)
		if errors.Is(err, store.ErrFull) && !l.refused {
			l.refused = true // what only carries on is taken
			l.looks = looks
			continue
		}
		if err != nil {
			return err
		}
		l.forgotten()
	}
	l.out.Stuck = len(l.looks) > 0
	return nil
}

// forgotten records that the parcels are forgotten that were with their cells when the look began.
func (l *look) forgotten() { l.Progress.forget, l.out.Progress.forget = 0, 0 }

// askTopic finds whether the topic takes tasks.
func (l *look) askTopic(ctx context.Context) error {
	l.refused = l.Topic.EnqueuePaused
	if l.Topic.MaxBacklog == 0 || len(l.looks) == 0 || l.refused {
		return nil
	}
	stats, err := l.Counts(ctx, place.Shards(l.Topic))
	pending := int64(0)
	for i := range stats {
		pending += stats[i].Pending
	}
	l.refused = pending >= int64(l.Topic.MaxBacklog)
	return err
}

// spread says when a task with slack is due: where the shard has placed the fewest.
func (l *look) spread(earliest, latest store.Millis) store.Millis {
	return l.smooth.Place(earliest, latest, l.Random())
}

// forwardLost sends on, from a shard of before a reshard, what is told to schedules that have
// moved.
func (l *look) forwardLost(ctx context.Context) error {
	gone := make(map[store.CellID]bool)
	for _, look := range l.looks {
		if look.Cell.Version == 0 && look.Cell.ID.Kind() == store.CellSchedule {
			gone[look.Cell.ID] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if former, err := (mover{l}).formerByNow(ctx); err != nil || !former {
		return err
	}
	var parcels []store.Parcel
	for _, p := range l.parcels {
		if gone[p.To] {
			parcels = append(parcels, p)
		}
	}
	if err := (mover{l}).forward(ctx, parcels); err != nil {
		return err
	}
	l.looks = slices.DeleteFunc(l.looks, func(look schedule.Look) bool { return gone[look.Cell.ID] })
	for id := range gone {
		l.settled(id)
	}
	l.out.Again = true
	return nil
}

// finishParcels finds how far the parcels are with their cells.
func (l *look) finishParcels() {
	for i := range l.parcels {
		if l.waits[l.parcels[i].To] {
			break
		}
		if l.gone[l.parcels[i].To] && schedule.Told(&l.parcels[i]) != nil {
			l.out.Dropped++
		}
		l.out.Progress.Taken = l.parcels[i].Number
		l.out.Progress.forget = l.parcels[i].Number
	}
	switch {
	case l.Busy && !l.brief: // the shard finds what is left by Heard
		l.out.Progress.Heard = max(l.out.Progress.Heard, l.last())
	case l.more && l.out.Progress.Taken > l.Progress.Taken:
		l.out.Again = true
	}
	switch {
	case l.out.Progress.forget == 0:
	case len(l.parcels) > 0 && l.onlyFor(store.CellWalk): // nobody waits for that
		l.out.Rest, l.out.Tidy = walkRest, tidyWithin
	case l.Busy, !l.former() && l.onlyFor(store.CellWalk, store.CellWorkflow): // the next look that commits takes them along
		l.out.Tidy = tidyWithin
	default:
		l.out.Again = true
	}
	if len(l.parcels) == 0 && l.out.Progress.Heard > l.out.Progress.Taken {
		l.out.Progress.Taken = l.out.Progress.Heard // the others are not there any more
	}
}

// onlyFor says whether the in-box had nothing but what cells of some kinds are told.
func (l *look) onlyFor(kinds ...byte) bool {
	return !slices.ContainsFunc(l.parcels, func(p store.Parcel) bool { return !slices.Contains(kinds, p.To.Kind()) })
}

// lookAhead finds when the next cell wakes.
func (l *look) lookAhead(ctx context.Context) error {
	if l.brief {
		toldLook{l}.lookAhead()
		return nil
	}
	l.out.Progress.wakes, l.out.Progress.whole, l.out.Progress.next = store.Wake{}, 0, 0
	if len(l.wakes) == l.Knobs.PassBatch {
		l.out.Progress.wakes, l.out.Again = l.wakes[len(l.wakes)-1], true
		return nil
	}
	_, first, err := l.Store.Wakes(ctx, l.ID, store.WakeQuery{To: store.MaxDue, Limit: 1})
	if err != nil {
		return err
	}
	l.out.Next = 0
	if len(first) > 0 {
		l.out.Next = first[0].At
		if l.out.Next <= l.asOf && !l.changed { // nobody here knows what it is
			l.out.Next = l.Now().Add(unknownRetry)
		}
	}
	err = l.lookForCrowds(ctx)
	l.out.Progress.whole, l.out.Progress.next = l.out.Began, l.out.Next
	return err
}

// crowdBounds are the moments up to which wakes are counted, from now.
var crowdBounds = [...]time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, 90 * time.Second,
	2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute,
}

// lookForCrowds sees to it that what many cells wake for is made in time.
func (l *look) lookForCrowds(ctx context.Context) error {
	now := l.Now()
	if l.Cells < crowdedCells || now < l.Progress.crowdsAt {
		return nil
	}
	bounds := make([]store.Millis, len(crowdBounds))
	for i, d := range crowdBounds {
		bounds[i] = now.Add(d)
	}
	_, counts, err := l.Store.WakeHistogram(ctx, l.ID, bounds)
	if err != nil {
		return err
	}
	var begin store.Millis
	l.out.Progress.lead, begin = schedule.CrowdLead(now, bounds, counts)
	l.out.Progress.crowdsAt = now.Add(crowdEvery)
	if l.out.Progress.lead > schedule.Lead && l.Progress.leadOf() < l.out.Progress.lead {
		l.out.Again = true
	}
	if begin != 0 && (l.out.Next == 0 || begin < l.out.Next) {
		l.out.Next = begin
	}
	return nil
}
