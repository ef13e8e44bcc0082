package agenda

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// shardScene is a Shard, its wheel, and the pages that it asked for.
type shardScene struct {
	*Shard
	wheel sceneWheel
	lanes map[string]*Lane // being read
	now   store.Millis
	out   strings.Builder
}

// sceneWheel is a wheel that never fires by itself.
type sceneWheel struct {
	due   map[string]store.Millis
	exact map[string]bool // of due, those that it tells of when they are due
	scene *shardScene
}

func (w *sceneWheel) Len() int { return len(w.due) }

func (w *sceneWheel) Due(id string) (store.Millis, bool) {
	due, there := w.due[id]
	return due, there
}

func (w *sceneWheel) InsertAll(es []store.Entry) {
	for _, e := range es {
		w.scene.say("wheel: %s@%d", e.ID, e.Due)
		w.due[e.ID] = e.Due
		delete(w.exact, e.ID)
	}
}

func (w *sceneWheel) InsertExact(es []store.Entry) {
	for _, e := range es {
		w.scene.say("wheel: %s@%d exactly", e.ID, e.Due)
		w.due[e.ID] = e.Due
		w.exact[e.ID] = true
	}
}

func (w *sceneWheel) At(due store.Millis) (n int) {
	for id, at := range w.due {
		if at == due && !w.exact[id] {
			n++
		}
	}
	return n
}

func (w *sceneWheel) Crowd(due, when store.Millis) { w.scene.say("crowd of %d at %d", due, when) }

func (w *sceneWheel) Remove(id string) {
	if _, there := w.due[id]; there {
		w.scene.say("wheel: %s goes", id)
		delete(w.due, id)
		delete(w.exact, id)
	}
}

func (w *sceneWheel) LookAt(key string, when store.Millis) {
	if key == leftOut {
		key = "what was left out "
	}
	w.scene.say("look at %s@%d", key, when)
}

func (w *sceneWheel) Clear() {
	w.scene.say("wheel: empty")
	clear(w.due)
	clear(w.exact)
}

func (s *shardScene) say(format string, args ...any) {
	fmt.Fprintf(&s.out, format+"\n", args...)
}

// TestShard runs the scenarios of testdata/shard. Tasks are written id@due, then
// :priority, /ordering key and =rate key; moments are in milliseconds. After each step come the
// changes of the wheel, the tasks made ready, what is asked of the store, and how far the
// window and each lane reach.
func TestShard(t *testing.T) {
	datadriven.Walk(t, "testdata/shard", func(t *testing.T, path string) {
		var s *shardScene
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "shard" {
				s = newShardScene(t, d)
			} else {
				s.step(t, d)
			}
			return s.report()
		})
	})
}

func newShardScene(t *testing.T, d *datadriven.TestData) *shardScene {
	var spare int
	c := Config{Horizon: 100 * time.Millisecond, Wheel: 100, Ready: 100, Page: 100}
	d.MaybeScanArgs(t, "wheel", &c.Wheel)
	d.MaybeScanArgs(t, "ready", &c.Ready)
	d.MaybeScanArgs(t, "page", &c.Page)
	d.MaybeScanArgs(t, "spare", &spare)
	c.Spare = time.Duration(spare) * time.Millisecond
	s := &shardScene{now: 1000, lanes: make(map[string]*Lane)}
	s.wheel = sceneWheel{due: make(map[string]store.Millis), exact: make(map[string]bool), scene: s}
	s.Shard = NewShard(c, &s.wheel)
	return s
}

func (s *shardScene) step(t *testing.T, d *datadriven.TestData) {
	var key string
	var from store.Millis
	d.MaybeScanArgs(t, "key", &key)
	d.MaybeScanArgs(t, "from", &from)
	tasks := sceneTasks(d.Input)
	switch d.Cmd {
	case "own":
		s.Own()
		s.Reread()
		s.Load(s.now)
	case "lose":
		s.Lose()
	case "pending":
		s.Pending(s.now, tasks...)
	case "werepending":
		s.WerePending(s.now, tasks...)
	case "found":
		s.Found(s.now, tasks...)
	case "loaded":
		s.say("counts: %v", s.Loaded(s.now, tasks, d.HasArg("more")))
	case "notloaded":
		s.say("matters: %v", s.NotLoaded())
	case "lane":
		s.say("counts: %v", s.LaneLoaded(s.now, s.takeLane(t, key), tasks, d.HasArg("more")))
	case "nolane":
		s.say("matters: %v", s.LaneNotLoaded(s.takeLane(t, key)))
	case "heads":
		s.LanesFound(s.now, laneHeads(tasks))
	case "noheads":
		s.say("again: %v", s.LanesNotFound())
	case "reread":
		s.Reread()
		s.Load(s.now)
	case "lower":
		s.Lower(from)
		s.Refresh(s.now)
	case "doubt":
		s.Doubt()
	case "unheard":
		s.Unheard(s.now)
	case "time":
		d.ScanArgs(t, "ms", &s.now)
	case "tick":
		s.Refresh(s.now)
		s.ScanBehind()
	case "at":
		d.ScanArgs(t, "ms", &s.now)
		s.Due(s.now, s.wheel.fire(s.now), d.HasArg("busy"))
	case "limits":
		s.say("changed: %v", s.LimitKeys(d.HasArg("rate"), d.HasArg("cap")))
	case "ahead":
		var ms int
		d.ScanArgs(t, "ms", &ms)
		s.HoldAhead(time.Duration(ms) * time.Millisecond)
	case "crowd":
		s.crowd(t, d)
	default:
		s.taskStep(t, d, key, tasks)
	}
}

// taskStep is a step about single tasks or ordering keys.
func (s *shardScene) taskStep(t *testing.T, d *datadriven.TestData, key string, tasks []store.Entry) {
	switch d.Cmd {
	case "held":
		for _, e := range tasks {
			s.Left(e.ID)
		}
	case "unheld":
		r := sceneResult(t, d)
		for _, e := range tasks {
			s.Unheld(s.now, e, r, s.Left(e.ID))
		}
	case "ended":
		for _, e := range tasks {
			s.HoldEnded(e.ID)
		}
	case "again": // a hold ended, and the task is pending
		for _, e := range tasks {
			s.HoldEnded(e.ID)
		}
		s.Pending(s.now, tasks...)
	case "removed":
		for _, e := range tasks {
			s.Removed([]string{e.ID})
		}
	case "wereremoved":
		for _, e := range tasks {
			s.WereRemoved([]string{e.ID})
		}
	case "look":
		s.LookAtKey(key)
	case "inorder":
		s.OrderFound(s.now, key, foundTasks(d.Input, key), d.HasArg("full"))
	case "noinorder":
		s.OrderNotFound(key)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}

func (s *shardScene) takeLane(t *testing.T, key string) *Lane {
	l := s.lanes[key]
	if l == nil {
		t.Fatalf("lane %q is not being read", key)
	}
	delete(s.lanes, key)
	return l
}

// crowd adds n tasks of one due time, or tells of them.
func (s *shardScene) crowd(t *testing.T, d *datadriven.TestData) {
	var due store.Millis
	var n, room, took int
	d.ScanArgs(t, "due", &due)
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "room", &room)
	d.MaybeScanArgs(t, "took", &took)
	switch {
	case took > 0:
		s.HeldMany(n, 1, time.Duration(took)*time.Millisecond)
	case n > 0:
		for i := range n {
			s.wheel.due[fmt.Sprintf("%d-%d", due, i)] = due
		}
		s.expectCrowd(due, s.wheel.At(due))
	case s.Crowd(s.now, due, room, d.HasArg("busy")):
		es := s.wheel.take(func(_ string, at store.Millis) bool { return at == due })
		s.say("taken: %d", len(es))
		s.CrowdDue(s.now, es)
		s.TakeReady()
	}
}

// fire takes what is due out of the wheel, and what is due soon with it when the wheel
// tells of some of that.
func (w *sceneWheel) fire(now store.Millis) []store.Entry {
	tells := false
	for id, due := range w.due {
		tells = tells || !w.exact[id] && due-w.scene.Lead() <= now
	}
	return w.take(func(id string, due store.Millis) bool {
		return due <= now || tells && !w.exact[id] && due <= w.scene.Until(now)
	})
}

func (w *sceneWheel) take(when func(id string, due store.Millis) bool) (es []store.Entry) {
	for id, due := range w.due {
		if when(id, due) {
			es = append(es, store.Entry{ID: id, Due: due})
			delete(w.due, id)
			delete(w.exact, id)
		}
	}
	slices.SortFunc(es, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
	return es
}

// sceneTasks reads tasks: id@due:priority/ordering key=rate key.
func sceneTasks(input string) (tasks []store.Entry) {
	for _, field := range strings.Fields(input) {
		rest, rate, _ := strings.Cut(field, "=")
		rest, key, _ := strings.Cut(rest, "/")
		rest, priority, _ := strings.Cut(rest, ":")
		id, due, _ := strings.Cut(rest, "@")
		e := store.Entry{ID: id}
		fmt.Sscan(due, &e.Due)
		if key+priority+rate != "" {
			e.Traits = &store.Traits{OrderingKey: key, RateKey: rate}
			fmt.Sscan(priority, &e.Traits.Priority)
		}
		tasks = append(tasks, e)
	}
	return tasks
}

func laneHeads(tasks []store.Entry) (heads []store.LaneHead) {
	for _, e := range tasks {
		heads = append(heads, store.LaneHead{Lane: e.Traits.Lane(), Due: e.Due})
	}
	return heads
}

func sceneResult(t *testing.T, d *datadriven.TestData) *store.HoldResult {
	var why string
	r := &store.HoldResult{}
	d.ScanArgs(t, "why", &why)
	d.MaybeScanArgs(t, "head", &r.Head)
	d.MaybeScanArgs(t, "due", &r.Due)
	for _, status := range []store.Status{store.Behind, store.NotDue, store.LeftOut, store.WrongState, store.NotFound, store.Expired} {
		if status.String() == why {
			r.Status = status
			return r
		}
	}
	t.Fatalf("no status %q", why)
	return nil
}

// report settles the step, and says what it came to.
func (s *shardScene) report() string {
	s.Settle(s.now)
	if ready := s.TakeReady(); len(ready) > 0 {
		s.say("ready: %s", ids(ready))
	}
	e := s.Effects()
	for _, keys := range e.Ask {
		s.say("ask for %s", strings.Join(keys, " "))
	}
	if e.Load != nil {
		s.say("load %s", sceneQuery(e.Load))
	}
	for _, l := range e.LoadLanes {
		name := laneName(l.Lane.Key)
		s.say("load lane %s %s", name, sceneQuery(&l.Query))
		s.lanes[name] = l.Lane
	}
	if e.ScanLanes {
		s.say("scan lanes")
	}
	e.Reset()
	s.describe()
	s.check()
	defer s.out.Reset()
	return s.out.String()
}

func ids(es []store.Entry) string {
	var b strings.Builder
	for i, e := range es {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(e.ID)
	}
	return b.String()
}

func sceneQuery(q *store.WindowQuery) string {
	return fmt.Sprintf("after %s to %d, at most %d", sceneMark(q.After), q.To, q.Limit)
}

func sceneMark(e store.Entry) string {
	if e.Due < 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s@%d", e.ID, e.Due)
}

func sceneUntil(until store.Millis) string {
	if until > store.MaxDue/2 {
		return "for good"
	}
	return fmt.Sprintf("until %d", until)
}

func laneName(l laneKey) string {
	if l.limitKeys != (limitKeys{}) {
		return fmt.Sprintf("%d=%s%s", l.Priority, l.rate, l.cap)
	}
	return fmt.Sprint(l.Priority)
}

func (s *shardScene) describe() {
	s.say("known up to %s%s, %d in the wheel, %d with the topic, %d behind",
		sceneMark(s.window.Mark), fullMark(&s.window), s.wheel.Len(), len(s.Shard.out), s.Behind())
	if until, dozes := s.Doze(); dozes && until > s.now {
		s.say("dozes %s", sceneUntil(until))
	}
	for _, l := range slices.SortedFunc(maps.Keys(s.Shard.lanes.ByKey), laneKey.compare) {
		lane := s.Shard.lanes.ByKey[l]
		s.say("lane %s up to %s%s, %d in the wheel, %d with the topic",
			laneName(l), sceneMark(lane.window.Mark), fullMark(&lane.window), lane.Wheel, lane.Ready)
	}
}

func fullMark(w *window) string {
	if w.Full {
		return " (full)"
	}
	return ""
}

// check says which invariants do not hold.
func (s *shardScene) check() {
	for id := range s.Shard.out {
		if _, there := s.wheel.due[id]; there {
			s.say("FAULT: %s is ready, and in the wheel", id)
		}
		if s.orders.Waiting[id] != nil {
			s.say("FAULT: %s is ready, and waits", id)
		}
	}
	for id := range s.orders.Waiting {
		if _, there := s.wheel.due[id]; there {
			s.say("FAULT: %s waits, and is in the wheel", id)
		}
	}
	for id := range s.Shard.lanes.tasks {
		if _, there := s.wheel.due[id]; !there && !s.WithTopic(id) {
			s.say("FAULT: %s has traits, and is in neither", id)
		}
	}
}
