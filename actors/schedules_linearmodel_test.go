package actors_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
)

// cellOp is what a caller, an owner or a worker does to a schedule.
type cellOp uint8

const (
	cellPut cellOp = iota
	cellPause
	cellResume
	cellTrigger
	cellDelete
	cellGet
	cellMake    // a commit makes runs of occurrences, or takes some back
	cellDeliver // a worker gets the task of a run
	cellAck
)

var cellOps = [...]string{"put", "pause", "resume", "trigger", "delete", "get", "make", "deliver", "ack"}

// anyVersion is the ifVersion of a put that names none.
const anyVersion = -1

// cellIn is an operation.
type cellIn struct {
	op        cellOp
	kind      int    // of cellPut: which of some specs
	ifVersion int64  // of cellPut and cellDelete
	request   string // of cellTrigger
	allow     bool   // of cellTrigger: also while a run is open
	run       string // of those of a worker

	// Of cellMake.
	life   uint64
	adds   []cellRun
	takes  []string
	isLast bool // it deletes the schedule
}

// cellOut is what it came to.
type cellOut struct {
	refused string
	unsure  bool // the answer does not say what was done
	lost    bool // an answer of the store was: what another did that comes to the same may be taken for its own

	life     uint64
	version  int64
	kind     int
	paused   bool
	outcome  schedules.Outcome
	at       store.Millis // when it came
	run      string       // of cellTrigger
	repeated bool
}

// cellRun is a run that is open.
type cellRun struct {
	id    string
	kind  int
	tried bool         // a worker has it
	at    store.Millis // its occurrence, of the timetable
}

// cellState is a schedule that makes no run while one is open.
type cellState struct {
	life    uint64 // 0: there is none
	version int64
	kind    int
	paused  bool
	since   store.Millis      // of a pause: it has been answered by then; 0: it was not
	known   map[string]string // requests of triggers -> their runs
	open    []cellRun
	orphans []cellRun // runs of schedules that are deleted
}

// cellModel says what one operation after the other may come to.
func cellModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{cellState{}} },
		Step: func(state, input, output any) (all []any) {
			s, in, out := state.(cellState), input.(cellIn), output.(cellOut)
			if out.unsure {
				all = append(all, s)
			}
			if next, can := s.after(in, out); can {
				all = append(all, next)
			}
			return all
		},
		Equal:             reflect.DeepEqual,
		DescribeOperation: func(input, output any) string { return describeCell(input.(cellIn), output.(cellOut)) },
	}
	return m.ToModel()
}

// describeCell leaves out what an operation does not have.
func describeCell(in cellIn, out cellOut) string {
	text := cellOps[in.op]
	add := func(has bool, format string, args ...any) {
		if has {
			text += fmt.Sprintf(" "+format, args...)
		}
	}
	add(in.op == cellPut || in.op == cellDeliver, "kind %d", in.kind)
	add(in.op == cellPut || in.op == cellDelete, "if %d", in.ifVersion)
	add(in.op == cellTrigger, "%s allow %t", in.request, in.allow)
	add(in.run != "", "%s", in.run)
	add(in.op == cellMake, "%v, take back %v, of %d", in.adds, in.takes, in.life)
	return text + fmt.Sprintf(": %+v", out)
}

// after is the state that an operation leads to, and false when it cannot have come to that.
func (s cellState) after(in cellIn, out cellOut) (cellState, bool) {
	if out.refused != "" {
		return s, s.refuses(in, out)
	}
	switch in.op {
	case cellPut:
		return s.put(in, out)
	case cellMake:
		return s.make(in)
	case cellDeliver:
		return s.deliver(in)
	case cellAck:
		return s.ack(in)
	}
	if s.life == 0 {
		return s, in.op == cellDelete && out.lost
	}
	switch in.op {
	case cellPause:
		s = s.pause(out)
	case cellResume:
		s.paused = false
	case cellTrigger:
		return s.trigger(in, out)
	case cellDelete:
		return cellState{orphans: slices.Concat(s.orphans, s.open)}, in.ifVersion == 0 || in.ifVersion == s.version
	}
	return s, out.unsure || s.answers(out)
}

// pause pauses the schedule, unless it is paused. By the time of the answer it is.
func (s cellState) pause(out cellOut) cellState {
	switch {
	case !s.paused && out.unsure:
		s.since = 0
	case !s.paused || s.since == 0:
		s.since = out.at
	}
	s.paused = true
	return s
}

// answers reports whether a schedule is shown as it is.
func (s cellState) answers(out cellOut) bool {
	return out.life == s.life && out.version == s.version && out.kind == s.kind && out.paused == s.paused
}

// refuses reports whether an operation may be refused so.
func (s cellState) refuses(in cellIn, out cellOut) bool {
	switch out.refused {
	case "SCHEDULE_BUSY":
		return true
	case "NO_SCHEDULE":
		return s.life == 0 && in.op != cellPut
	case "SCHEDULE_EXISTS":
		return s.life != 0 && in.op == cellPut && in.ifVersion == 0
	case "VERSION_MISMATCH":
		return in.ifVersion > 0 && in.ifVersion != s.version && out.version == s.version
	case "RUN_OPEN":
		_, open := find(s.open, out.run)
		return in.op == cellTrigger && !in.allow && open && s.known[in.request] == ""
	}
	return false
}

// put creates a schedule, or changes it.
func (s cellState) put(in cellIn, out cellOut) (cellState, bool) {
	was := s
	can := in.ifVersion == anyVersion || in.ifVersion == s.version
	outcome := schedules.Changed
	switch {
	case s.life == 0:
		outcome = schedules.Created
		s = cellState{life: out.life, version: 1, kind: in.kind, orphans: s.orphans}
	case s.kind == in.kind && out.lost && out.outcome == schedules.Changed: // another may have put the same
		can = can || in.ifVersion == s.version-1
	case s.kind == in.kind:
		outcome = schedules.Unchanged
	default:
		s.kind = in.kind
		s.version++
	}
	if out.unsure {
		return s, can && (was.life != 0 || out.life != 0)
	}
	return s, can && out.outcome == outcome && out.version == s.version
}

// trigger makes a run, unless its request is known.
func (s cellState) trigger(in cellIn, out cellOut) (cellState, bool) {
	if run := s.known[in.request]; run != "" {
		return s, out.repeated && (out.run == "" || out.run == run)
	}
	can := !out.repeated && out.run != "" && out.kind == s.kind && (in.allow || len(s.open) == 0)
	known := map[string]string{in.request: out.run}
	for request, run := range s.known {
		known[request] = run
	}
	s.known, s.open = known, append(slices.Clip(s.open), cellRun{id: out.run, kind: s.kind})
	return s, can
}

// make makes runs of the timetable, or takes back what no worker has.
func (s cellState) make(in cellIn) (cellState, bool) {
	for _, id := range in.takes {
		i, there := find(s.open, id)
		if !there || s.open[i].tried {
			return s, false
		}
		s.open = slices.Delete(slices.Clone(s.open), i, i+1)
	}
	if len(in.adds) == 0 {
		return s, in.isLast || in.life == s.life
	}
	// A deletion decides what is due, too, before it deletes.
	can := (in.isLast || in.life == s.life) && s.life != 0 && !s.paused && len(s.open) == 0 && len(in.adds) == 1 && in.adds[0].kind == s.kind
	s.open = append(slices.Clip(s.open), in.adds...)
	return s, can
}

// deliver gives the task of a run to a worker.
func (s cellState) deliver(in cellIn) (cellState, bool) {
	for _, list := range []*[]cellRun{&s.open, &s.orphans} {
		if i, there := find(*list, in.run); there {
			*list = slices.Clone(*list)
			run := &(*list)[i]
			ahead := s.paused && s.since != 0 && run.at > s.since // it is to be taken back
			can := run.kind == in.kind && (run.tried || !ahead)
			run.tried = true
			return s, can
		}
	}
	return s, false
}

// ack ends a run.
func (s cellState) ack(in cellIn) (cellState, bool) {
	for _, list := range []*[]cellRun{&s.open, &s.orphans} {
		if i, there := find(*list, in.run); there {
			tried := (*list)[i].tried
			*list = slices.Delete(slices.Clone(*list), i, i+1)
			return s, tried
		}
	}
	return s, false
}

func find(runs []cellRun, id string) (int, bool) {
	i := slices.IndexFunc(runs, func(r cellRun) bool { return r.id == id })
	return i, i >= 0
}
