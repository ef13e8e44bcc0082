package shard

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// cellLook is one look at the cells of a shard: it reads those that wake and the parcels for
// them, and commits what becomes of them. It runs off the actor.
type cellLook struct {
	*shardState
	store store.Cells
	fence store.Fence
	topic *store.Topic
	place cellPlace
	cells int64

	wakes   []store.Wake
	parcels []store.Parcel
	looks   []schedule.Look
	walks   []schedule.Look // those at walks
	zones   zoneTable
	waits   map[store.CellID]bool // those whose cells have not taken them
	refused bool
	changed bool // some cell was
	tallies map[store.Shard]int64
	out     cellsKept
}

// cellsKept is what a look came to, in a CallDone.
type cellsKept struct {
	made      []madeRuns
	removed   []string
	cancelled []fleet.EndedHold
	told      []store.Shard // that got parcels
	place     cellPlace
	next      store.Millis
	again     bool // there is more to do
	stuck     bool // some cells could not be changed
	unseen
	err error
}

// madeRuns are the runs that one commit made; known are those of which it is not known when
// they became pending.
type madeRuns struct {
	seq          int64
	fresh, known []store.Entry
}

func (l *cellLook) run(ctx context.Context) *cellsKept {
	l.out.began, l.out.place = l.now(), l.place
	if l.out.err = l.read(ctx); l.out.err == nil {
		l.out.err = l.keep(ctx)
	}
	if l.out.err == nil {
		l.out.err = l.takeWalks(ctx)
	}
	if l.out.err == nil {
		l.finishParcels()
		l.out.err = l.lookAhead(ctx)
	}
	if l.out.err == nil && l.former() {
		l.out.err = l.move(ctx)
	}
	return &l.out
}

// read finds the cells to look at.
func (l *cellLook) read(ctx context.Context) (err error) {
	to := l.now().Add(l.place.leadOf() - schedule.Lead)
	var stamp store.Stamp
	if stamp, l.wakes, err = l.store.Wakes(ctx, l.id, store.WakeQuery{After: l.place.wakes, To: to, Limit: cellBatch}); err != nil {
		return err
	}
	l.out.place.heard = stamp.In
	if stamp.In > l.place.taken {
		if l.parcels, err = l.store.Parcels(ctx, l.id, store.InBox, l.place.taken, cellBatch); err != nil {
			return err
		}
	}
	return l.readCells(ctx)
}

func (l *cellLook) readCells(ctx context.Context) error {
	var ids []store.CellID
	at := make(map[store.CellID]int)
	add := func(id store.CellID) {
		if _, there := at[id]; !there {
			at[id], ids = len(ids), append(ids, id)
		}
	}
	for i := range l.parcels {
		add(l.parcels[i].To)
	}
	for _, w := range l.wakes {
		add(w.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	cells, err := l.store.Cells(ctx, l.id, ids)
	if err != nil {
		return err
	}
	l.waits = make(map[store.CellID]bool)
	for _, id := range ids {
		l.waits[id] = true
	}
	for _, c := range cells {
		l.looks = append(l.looks, schedule.Look{Cell: c, Topic: l.topic})
	}
	for _, p := range l.parcels {
		if i := at[p.To]; i < len(cells) {
			l.looks[i].Parcels = append(l.looks[i].Parcels, p)
		}
	}
	l.walks, l.looks = splitWalks(l.looks)
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
func (l *cellLook) keep(ctx context.Context) error {
	if err := l.askTopic(ctx); err != nil {
		return err
	}
	for range cellsPerRound {
		if err := l.forwardLost(ctx); err != nil {
			return err
		}
		commits, kept, looks, err := l.step(ctx)
		if err != nil {
			return err
		}
		if l.place.forget > 0 {
			commits = append(commits, store.Commit{Take: l.place.forget})
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
		l.place.forget, l.out.place.forget = 0, 0
	}
	l.out.stuck = len(l.looks) > 0
	return nil
}

// askTopic finds whether the topic takes tasks.
func (l *cellLook) askTopic(ctx context.Context) error {
	l.refused = l.topic.EnqueuePaused
	if l.topic.MaxBacklog == 0 || len(l.looks) == 0 || l.refused {
		return nil
	}
	stats, err := l.CountsOf(ctx, place.Shards(l.topic))
	pending := int64(0)
	for i := range stats {
		pending += stats[i].Pending
	}
	l.refused = pending >= int64(l.topic.MaxBacklog)
	return err
}

// spread says when a task with slack is due: at random, so that those of many schedules are
// as far apart as they may be.
func (l *cellLook) spread(earliest, latest store.Millis) store.Millis {
	return earliest + store.Millis(l.Random()*float64(latest-earliest))
}

// forwardLost sends on, from a shard of before a reshard, what is told to schedules that have
// moved.
func (l *cellLook) forwardLost(ctx context.Context) error {
	if !l.former() {
		return nil
	}
	gone := make(map[store.CellID]bool)
	for _, look := range l.looks {
		if look.Cell.Version == 0 && look.Cell.ID.Kind() == store.CellSchedule {
			gone[look.Cell.ID] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	var parcels []store.Parcel
	for _, p := range l.parcels {
		if gone[p.To] {
			parcels = append(parcels, p)
		}
	}
	if err := l.forward(ctx, parcels); err != nil {
		return err
	}
	l.looks = slices.DeleteFunc(l.looks, func(look schedule.Look) bool { return gone[look.Cell.ID] })
	for id := range gone {
		l.settled(id)
	}
	l.out.again = true
	return nil
}

// step returns what becomes of each cell for which something does.
func (l *cellLook) step(ctx context.Context) (commits []store.Commit, kept []schedule.Kept, looks []schedule.Look, err error) {
	now, bytes := l.now(), 0
	var known schedule.Calendars
	if len(l.looks) > 0 {
		if known, err = l.Calendars.Fresh(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, look := range l.looks {
		if bytes > cellBytes {
			l.out.again = true // the rest is for another look
			break
		}
		if look.Cell.ID.Kind() != store.CellSchedule {
			l.settled(look.Cell.ID) // nobody here knows what it is
			continue
		}
		if look.Cell.Version == 0 {
			l.Metrics.Schedules.Dropped.Add(float64(len(look.Parcels)))
		}
		env := schedule.Env{Now: now, Lead: l.place.leadOf(), Refused: l.refused, Place: l.spread, Known: known}
		k, err := schedule.Keep(look, env)
		if len(k.Doubt) > 0 {
			if look.Lost, err = l.findEnded(ctx, k.Doubt); err != nil {
				return nil, nil, nil, err
			}
			k, err = schedule.Keep(look, env)
		}
		if err != nil {
			l.Metrics.Schedules.Corrupt.Inc()
			l.Log.Error("the cell of a schedule cannot be read", "topic", l.id.Topic, "shard", l.id.N, "cell", look.Cell.ID.Key(), "err", err)
		}
		if len(k.Commit.Puts) == 0 {
			l.settled(look.Cell.ID)
			continue
		}
		commits, kept, looks = append(commits, k.Commit), append(kept, k), append(looks, look)
		bytes += commitSize(&k.Commit)
	}
	return commits, kept, looks, nil
}

// commitSize is about how many bytes a commit has.
func commitSize(c *store.Commit) int {
	n := 0
	for i := range c.Puts {
		n += len(c.Puts[i].Body)
	}
	for _, t := range c.Adds {
		n += len(t.Payload) + 256
	}
	return n
}

// findEnded looks at the tasks of runs that have been open for long. That some have ended,
// and that was not told, is repaired.
func (l *cellLook) findEnded(ctx context.Context, ids []string) ([]schedule.Ended, error) {
	_, found, err := store.GetAll(ctx, l.Store, l.id, ids)
	if err != nil {
		return nil, err
	}
	lost := schedule.LostEnds(found, l.now())
	if len(lost) > 0 {
		l.Metrics.Schedules.Repaired.Add(float64(len(lost)))
		l.Log.Warn("ends of runs were not told", "topic", l.id.Topic, "shard", l.id.N, "count", len(lost))
	}
	return lost, nil
}

// settled records that a cell has taken the parcels for it.
func (l *cellLook) settled(id store.CellID) { delete(l.waits, id) }

// commit makes commits, and leaves the looks for which that failed.
func (l *cellLook) commit(ctx context.Context, commits []store.Commit, kept []schedule.Kept, looks []schedule.Look) error {
	stamp, results, err := l.commitAll(ctx, l.id, &l.fence, commits)
	if err != nil {
		return err
	}
	l.looks = nil
	made := madeRuns{seq: stamp.Seq}
	for i := range looks {
		look, r := looks[i], &results[i]
		l.Metrics.Schedules.CountCommit("schedule", r.Status)
		switch {
		case r.Status == store.OK:
			made.fresh = appendRuns(made.fresh, &commits[i])
			l.accept(ctx, &commits[i], &kept[i], look.Cell.ID)
			continue
		case r.Status == store.Stale && schedule.Landed(&commits[i], r):
			made.known = appendRuns(made.known, &commits[i])
			l.accept(ctx, &commits[i], &kept[i], look.Cell.ID)
			continue
		case r.Status == store.Stale && r.Cell.ID == look.Cell.ID:
			look.Cell = r.Cell
			look.Begun, look.Alien, look.Lost = nil, nil, nil
		case r.Status == store.WrongState:
			look.Begun = append(look.Begun, r.ID)
		case r.Status == store.Conflict:
			look.Alien = append(look.Alien, r.ID)
		}
		l.looks = append(l.looks, look)
	}
	l.out.made = append(l.out.made, made)
	return nil
}

func appendRuns(es []store.Entry, c *store.Commit) []store.Entry {
	for _, t := range c.Adds {
		es = append(es, store.Entry{ID: t.ID, Due: t.Due, Traits: t.Traits})
	}
	return es
}

// accept records a commit that was made.
func (l *cellLook) accept(ctx context.Context, c *store.Commit, k *schedule.Kept, id store.CellID) {
	l.settled(id)
	l.changed = true
	for _, r := range c.Removes {
		l.out.removed = append(l.out.removed, r.ID)
	}
	l.findCancelled(ctx, c.Cancels)
	l.count(k)
}

// findCancelled finds the holds of runs that are asked to end, so that their workers are
// told. Those that are not found see it when they extend.
func (l *cellLook) findCancelled(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		return
	}
	_, found, err := store.GetAll(ctx, l.Store, l.id, ids)
	if err != nil {
		return
	}
	for _, f := range found {
		if f.State == store.StateRunning {
			l.out.cancelled = append(l.out.cancelled, fleet.EndedHold{ID: f.ID, Token: f.Token})
		}
	}
}

// count counts what became of occurrences.
func (l *cellLook) count(k *schedule.Kept) {
	now := l.now()
	for _, m := range k.Make {
		if m.Origin == schedule.ByTimetable {
			l.Metrics.Schedules.CountMade(l.id.Topic, m.At.Sub(now))
		}
	}
	missed := int64(0)
	for _, skip := range k.Skips {
		l.Metrics.Schedules.CountSkipped(l.id.Topic, skip.Reason.String(), skip.Count)
		if skip.Reason == schedule.Missed {
			missed += skip.Count
		}
	}
	if missed > 0 {
		l.Log.Warn("occurrences missed", "topic", l.id.Topic, "shard", l.id.N, "schedule", k.Schedule.Name, "count", missed)
	}
	if k.Paused {
		l.Log.Warn("schedule paused after failures", "topic", l.id.Topic, "shard", l.id.N, "schedule", k.Schedule.Name)
	}
}

// finishParcels finds how far the parcels are with their cells.
func (l *cellLook) finishParcels() {
	for i := range l.parcels {
		if l.waits[l.parcels[i].To] {
			break
		}
		l.out.place.taken = l.parcels[i].Number
		l.out.place.forget = l.parcels[i].Number
	}
	full := len(l.parcels) == cellBatch
	l.out.again = l.out.again || full && l.out.place.taken > l.place.taken || l.out.place.forget > 0
	if len(l.parcels) == 0 && l.out.place.heard > l.out.place.taken {
		l.out.place.taken = l.out.place.heard // the others are not there any more
	}
}

// lookAhead finds when the next cell wakes.
func (l *cellLook) lookAhead(ctx context.Context) error {
	l.out.place.wakes = store.Wake{}
	if len(l.wakes) == cellBatch {
		l.out.place.wakes, l.out.again = l.wakes[cellBatch-1], true
		return nil
	}
	_, first, err := l.store.Wakes(ctx, l.id, store.WakeQuery{To: store.MaxDue, Limit: 1})
	if err != nil {
		return err
	}
	l.out.next = 0
	if len(first) > 0 {
		l.out.next = first[0].At
		if l.out.next <= l.out.began && !l.changed { // nobody here knows what it is
			l.out.next = l.now().Add(StoreRetry)
		}
	}
	return l.lookForCrowds(ctx)
}

// crowdBounds are the moments up to which wakes are counted, from now.
var crowdBounds = [...]time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, 90 * time.Second,
	2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute,
}

// lookForCrowds sees to it that what many cells wake for is made in time.
func (l *cellLook) lookForCrowds(ctx context.Context) error {
	now := l.now()
	if l.cells < crowdedCells || now < l.place.crowdsAt {
		return nil
	}
	bounds := make([]store.Millis, len(crowdBounds))
	for i, d := range crowdBounds {
		bounds[i] = now.Add(d)
	}
	_, counts, err := l.store.WakeHistogram(ctx, l.id, bounds)
	if err != nil {
		return err
	}
	var begin store.Millis
	l.out.place.lead, begin = schedule.CrowdLead(now, bounds, counts)
	l.out.place.crowdsAt = now.Add(crowdEvery)
	if l.out.place.lead > schedule.Lead && l.place.leadOf() < l.out.place.lead {
		l.out.again = true
	}
	if begin != 0 && (l.out.next == 0 || begin < l.out.next) {
		l.out.next = begin
	}
	return nil
}
