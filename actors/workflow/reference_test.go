package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

// reference recomputes a workflow from all that ever happened to it, without indices, orders
// or anything that was computed before: for each event all conditions of all steps are looked at
// until nothing changes. Names are its only keys.
type reference struct {
	def     *graph.Definition
	history []refEvent

	steps     []refStep
	units     map[string]*refUnit
	phase     State
	paused    bool
	cancelled bool
	cause     Cause
	askTo     int
	made      int
	before    int // made before this event
	ends      int
	kept      []string
	begun     map[refTry]int // how often each of them began
}

type refStep struct {
	graph.Step
	name   string
	parent string // of the step that it grew from
	prefix string
	units  []string
}

type refUnit struct {
	state UnitState
	try   int
	asked bool
	rest  bool
	left  bool
	made  int
	order int
	time  int // of the try that is open

	suspended bool
	begun     bool // it was suspended in this try
}

// refTry is what a task is made for. What is skipped, or grown anew, begins the same one again,
// with another task.
type refTry struct {
	unit string
	try  int
	undo bool
}

// refEvent is an event by the name of its unit, and the try that it is of.
type refEvent struct {
	what string // done, failed, deleted, signal, cancel, pause, resume, retry, from, skip
	refTry
	time int
	grow *graph.Growth
}

func (e refEvent) String() string { return fmt.Sprintf("%s %s try %d", e.what, e.unit, e.try) }

// replay computes all anew.
func (r *reference) replay() {
	r.steps, r.units, r.phase, r.paused, r.cancelled, r.cause, r.askTo, r.made, r.ends, r.kept = nil, make(map[string]*refUnit), Running, false, false, CauseNone, 0, 0, 0, nil
	r.begun = make(map[refTry]int)
	r.add(r.def.Steps, "", "")
	r.settle()
	for _, e := range r.history {
		r.happened(e)
		r.settle()
	}
}

// begins counts a try, and says which time it is.
func (r *reference) begins(t refTry) int {
	r.begun[t]++
	return r.begun[t]
}

func (r *reference) add(steps []graph.Step, prefix, parent string) {
	for _, s := range steps {
		of := refStep{Step: s, name: prefix + s.Name, parent: parent, prefix: prefix}
		switch {
		case s.Copies == nil || *s.Copies == 0:
			of.units = []string{of.name}
		default:
			for n := range *s.Copies {
				of.units = append(of.units, fmt.Sprintf("%s#%d", of.name, n+1))
			}
		}
		for _, u := range of.units {
			r.units[u] = &refUnit{}
		}
		r.steps = append(r.steps, of)
	}
}

func (r *reference) stepNamed(name string) *refStep {
	for i := range r.steps {
		if r.steps[i].name == name {
			return &r.steps[i]
		}
	}
	return nil
}

func (r *reference) stepOfUnit(unit string) *refStep {
	for i := range r.steps {
		if slices.Contains(r.steps[i].units, unit) {
			return &r.steps[i]
		}
	}
	return nil
}

func (r *reference) happened(e refEvent) {
	u := r.units[e.unit]
	switch e.what {
	case "done", "failed", "deleted":
		r.ended(e, u)
	case "signal":
		if r.phase.Open() {
			r.signal(e.unit)
		}
	case "cancel":
		if r.phase == Running || r.phase == Failing {
			r.phase, r.cancelled, r.paused, r.askTo = Cancelling, true, false, r.made
			r.endWaits()
		}
	case "pause":
		r.paused = r.phase.Open()
	case "resume":
		r.paused = false
	case "retry":
		r.retry(func(unit string) bool {
			u := r.units[unit]
			return u.state == UnitFailed || u.state == UnitCancelled && !u.rest
		})
	case "from":
		r.from(e.unit)
	case "skip":
		r.skip(e.unit)
	}
}

func (r *reference) ended(e refEvent, u *refUnit) {
	switch {
	case u == nil || u.try != e.try || u.time != e.time:
	case e.undo && u.state == UnitUndoing:
		u.state = map[string]UnitState{"done": UnitUndone}[e.what]
		if e.what != "done" {
			u.state = UnitUndoFailed
		}
	case e.undo || u.state != UnitMade || u.suspended:
	case e.what == "done" && e.grow.Suspends() && !u.asked:
		u.begun = true
		if u.suspended = r.grow(e); !u.suspended {
			r.failed(e.unit, u)
		}
	case e.what == "done" && !e.grow.Suspends():
		r.done(u)
		r.grow(e)
	case u.asked:
		u.state = UnitCancelled
	default:
		r.failed(e.unit, u)
	}
}

func (r *reference) failed(unit string, u *refUnit) {
	u.state, u.suspended = UnitFailed, false
	if !r.stepOfUnit(unit).IgnoreFailure {
		r.fail()
	}
}

// grow reports whether steps grew.
func (r *reference) grow(e refEvent) bool {
	if e.grow == nil {
		return false
	}
	known := func(s graph.Step) bool { return r.stepNamed(e.unit+"."+s.Name) != nil }
	grows := len(e.grow.Steps) > 0 && !slices.ContainsFunc(e.grow.Steps, known)
	if grows {
		r.add(e.grow.Steps, e.unit+".", r.stepOfUnit(e.unit).name)
	}
	for _, name := range e.grow.Skip {
		r.leaveOut(name)
	}
	return grows
}

func (r *reference) leaveOut(name string) {
	s := r.stepNamed(name)
	if s == nil || !r.all(s, UnitWaiting) {
		return
	}
	for _, unit := range s.units {
		r.units[unit].state, r.units[unit].left = UnitSkipped, true
	}
}

func (r *reference) all(s *refStep, state UnitState) bool {
	return !slices.ContainsFunc(s.units, func(u string) bool { return r.units[u].state != state })
}

func (r *reference) done(u *refUnit) {
	r.ends++
	u.state, u.order = UnitDone, r.ends
}

func (r *reference) fail() {
	if r.phase != Running {
		return
	}
	r.phase, r.cause = Failing, CauseStep
	if r.def.Failure == graph.CancelRunning {
		r.askTo = r.made
	}
	if r.def.Failure != graph.CarryOn {
		r.endWaits()
	}
}

func (r *reference) endWaits() {
	for _, s := range r.steps {
		for _, unit := range s.units {
			if u := r.units[unit]; s.Wait != nil && u.state == UnitMade {
				u.state, u.asked = UnitCancelled, true
			}
		}
	}
}

func (r *reference) signal(name string) {
	for _, s := range r.steps {
		for _, unit := range s.units {
			if u := r.units[unit]; s.Wait != nil && s.Wait.Signal == name && u.state == UnitMade {
				r.done(u)
				return
			}
		}
	}
	r.kept = append(r.kept, name)
}

func (r *reference) steady() bool {
	if r.phase == Cancelling || r.phase == Undoing {
		return false
	}
	for _, u := range r.units {
		if u.state == UnitMade && u.asked && !u.rest {
			return false
		}
	}
	return true
}

func (r *reference) retry(which func(string) bool) {
	if !r.steady() {
		return
	}
	some := false
	for unit, u := range r.units {
		if which(unit) {
			*u, some = refUnit{try: u.try}, true
		}
	}
	if some {
		r.reopen()
	}
}

func (r *reference) reopen() {
	for unit, u := range r.units {
		if u.state == UnitUndone || u.state == UnitUndoFailed {
			r.prune(unit)
		}
	}
	for _, u := range r.units {
		if u.state == UnitUndone || u.state == UnitUndoFailed || u.state == UnitSkipped && !u.left && !u.rest {
			*u = refUnit{try: u.try}
		}
	}
	r.phase, r.cancelled, r.cause, r.askTo = Running, false, CauseNone, 0
}

// dependsOn reports whether a step is behind another one, or grew from one that is.
func (r *reference) dependsOn(s *refStep, on string, seen map[string]bool) bool {
	if s.name == on {
		return true
	}
	if seen[s.name] {
		return false
	}
	seen[s.name] = true
	if s.parent != "" && r.dependsOn(r.stepNamed(s.parent), on, seen) {
		return true
	}
	for _, a := range s.After {
		at := r.stepNamed(s.prefix + a.Step)
		if r.dependsOn(at, on, seen) {
			return true
		}
		for i := range r.steps { // what grew from it
			if a.Grown && strings.HasPrefix(r.steps[i].name, at.name) && r.grewFrom(&r.steps[i], at.name) && r.dependsOn(&r.steps[i], on, seen) {
				return true
			}
		}
	}
	return false
}

func (r *reference) grewFrom(s *refStep, from string) bool {
	for s.parent != "" {
		if s.parent == from {
			return true
		}
		s = r.stepNamed(s.parent)
	}
	return false
}

func (r *reference) from(name string) {
	if !r.steady() || r.stepNamed(name) == nil {
		return
	}
	behind := make(map[string]bool)
	for i := range r.steps {
		s := &r.steps[i]
		if r.dependsOn(s, name, make(map[string]bool)) {
			behind[s.name] = true
			if slices.ContainsFunc(s.units, func(u string) bool { return r.units[u].state == UnitMade }) {
				return
			}
		}
	}
	var kept []refStep
	for _, s := range r.steps {
		gone := false
		for parent := s.parent; parent != ""; parent = r.stepNamed(parent).parent {
			gone = gone || behind[parent]
		}
		for _, unit := range s.units {
			if gone {
				delete(r.units, unit)
			} else if behind[s.name] {
				r.units[unit] = &refUnit{try: r.units[unit].try}
			}
		}
		if !gone {
			kept = append(kept, s)
		}
	}
	r.steps = kept
	r.reopen()
}

// prune removes all that a unit grew.
func (r *reference) prune(unit string) {
	r.steps = slices.DeleteFunc(r.steps, func(s refStep) bool {
		gone := strings.HasPrefix(s.name, unit+".")
		for _, u := range s.units {
			if gone {
				delete(r.units, u)
			}
		}
		return gone
	})
}

func (r *reference) skip(name string) {
	s := r.stepNamed(name)
	if s == nil || !r.steady() {
		return
	}
	var some []*refUnit
	for _, unit := range s.units {
		switch u := r.units[unit]; {
		case u.state == UnitDone && len(s.units) > 1:
		case u.state == UnitMade && s.Wait == nil, u.state == UnitDone:
			return
		default:
			some = append(some, u)
		}
	}
	for _, unit := range s.units {
		if u := r.units[unit]; slices.Contains(some, u) && (u.state == UnitUndone || u.state == UnitUndoFailed) {
			r.prune(unit)
		}
	}
	for _, u := range some {
		*u = refUnit{try: u.try}
		r.done(u)
	}
	if len(some) > 0 && r.phase != Running && !r.unsound() {
		r.reopen()
	}
}

func (r *reference) unsound() bool {
	for _, s := range r.steps {
		for _, unit := range s.units {
			u := r.units[unit]
			if u.state == UnitFailed && !s.IgnoreFailure || u.state == UnitCancelled && !u.rest {
				return true
			}
		}
	}
	return false
}

// settle looks at all steps in their order until nothing changes any more.
func (r *reference) settle() {
	r.before = r.made
	if !r.phase.Open() {
		return
	}
	for _, s := range r.steps {
		for _, unit := range s.units {
			if u := r.units[unit]; u.state == UnitMade && !u.asked && u.made <= r.askTo {
				u.asked = true
				if u.suspended {
					u.state, u.suspended = UnitCancelled, false
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range r.steps {
			for r.goOn(&r.steps[i]) || r.look(&r.steps[i]) {
				changed = true
			}
		}
	}
	r.close()
}

// goOn makes one unit of a step anew that is suspended, and has nothing to wait for.
func (r *reference) goOn(s *refStep) bool {
	for _, unit := range s.units {
		if u := r.units[unit]; u.suspended && !r.paused && !r.calls(unit) {
			r.made++
			u.suspended, u.made, u.time = false, r.made, r.begins(refTry{unit: unit, try: u.try})
			return true
		}
	}
	return false
}

// calls reports whether something is open of what grew from a unit.
func (r *reference) calls(unit string) bool {
	return slices.ContainsFunc(r.steps, func(s refStep) bool { return strings.HasPrefix(s.name, unit+".") && r.how(&s) == "open" })
}

// look makes or skips one unit of a step.
func (r *reference) look(s *refStep) bool {
	open := 0
	var next *refUnit
	var name string
	for _, unit := range s.units {
		switch u := r.units[unit]; {
		case u.state == UnitMade:
			open++
		case u.state == UnitWaiting && next == nil:
			next, name = u, unit
		}
	}
	if next == nil {
		return false
	}
	met, possible := r.conditions(s)
	switch {
	case r.forbidden(s) || !possible:
		next.state = UnitSkipped
		return true
	case !met || r.paused || s.AtATime > 0 && open >= s.AtATime:
		return false
	}
	first := !slices.ContainsFunc(s.units, func(u string) bool { return r.units[u].try > 0 })
	if first && s.CancelRest {
		r.cancelRest(s)
	}
	r.made++
	*next = refUnit{state: UnitMade, try: next.try + 1, made: r.made}
	switch {
	case s.Copies != nil && *s.Copies == 0:
		r.done(next)
	case s.Wait != nil:
		if i := slices.Index(r.kept, s.Wait.Signal); i >= 0 {
			r.kept = slices.Delete(r.kept, i, i+1)
			r.done(next)
		}
	case r.calls(name):
		next.suspended = true
	default:
		next.time = r.begins(refTry{unit: name, try: next.try})
	}
	return true
}

func (r *reference) cancelRest(s *refStep) {
	for _, a := range s.After {
		r.endRest(r.stepNamed(s.prefix + a.Step))
	}
}

func (r *reference) endRest(rest *refStep) {
	for _, unit := range rest.units {
		switch u := r.units[unit]; {
		case u.state == UnitWaiting:
			u.state, u.rest = UnitSkipped, true
		case u.state == UnitSkipped:
			u.rest = true
		case u.state != UnitMade || u.asked:
		case u.suspended:
			u.state, u.suspended, u.rest = UnitCancelled, false, true
			for i := range r.steps {
				if r.steps[i].prefix == unit+"." {
					r.endRest(&r.steps[i])
				}
			}
		case u.made > r.before: // as if it never was
			if rest.Wait == nil {
				r.begun[refTry{unit: unit, try: u.try}]--
			}
			if u.begun {
				u.state, u.rest = UnitCancelled, true
				continue
			}
			*u = refUnit{state: UnitSkipped, try: u.try - 1, rest: true}
		default:
			u.asked, u.rest = true, true
			if rest.Wait != nil {
				u.state = UnitCancelled
			}
		}
	}
}

func (r *reference) forbidden(s *refStep) bool {
	handles := slices.ContainsFunc(s.After, func(a graph.After) bool { return a.On != graph.OnDone })
	failed := slices.ContainsFunc(s.units, func(u string) bool { return r.units[u].state == UnitFailed })
	switch r.phase {
	case Cancelling, Undoing:
		return true
	case Failing:
		if r.def.Failure != graph.CarryOn && !handles {
			return true
		}
	}
	return failed && !s.IgnoreFailure
}

// conditions says whether enough of them are met, and whether enough may yet be.
func (r *reference) conditions(s *refStep) (met, possible bool) {
	need, yes, maybe := s.Need, 0, 0
	if need == 0 {
		need = len(s.After)
	}
	for _, a := range s.After {
		at := r.stepNamed(s.prefix + a.Step)
		group := []*refStep{at}
		how := r.how(at)
		if a.Grown && (how == "done" || how == "failed") {
			for i := range r.steps {
				if r.grewFrom(&r.steps[i], at.name) {
					group = append(group, &r.steps[i])
				}
			}
		}
		ignored := at.IgnoreFailure
		for _, g := range group[1:] {
			switch h := r.how(g); {
			case h == "open":
				how = "open"
			case how == "open":
			case h == "failed" && !g.IgnoreFailure:
				how, ignored = "failed", false
			case h == "cancelled" && (how == "done" || how == "failed" && ignored):
				how, ignored = "cancelled", false
			}
		}
		switch {
		case how == "open":
			maybe++
		case a.On == graph.OnEnded, a.On == graph.OnFailed && how == "failed", a.On == graph.OnDone && (how == "done" || how == "failed" && ignored):
			yes++
		}
	}
	return yes >= need, yes+maybe >= need
}

func (r *reference) how(s *refStep) string {
	rank := []string{"done", "skipped", "cancelled", "failed", "open"}
	worst := 0
	for _, unit := range s.units {
		at := 0
		switch r.units[unit].state {
		case UnitWaiting, UnitMade:
			at = 4
		case UnitFailed:
			at = 3
		case UnitCancelled:
			at = 2
		case UnitSkipped:
			at = 1
		}
		worst = max(worst, at)
	}
	return rank[worst]
}

func (r *reference) close() {
	if r.paused {
		return
	}
	for _, u := range r.units {
		if u.state.Open() {
			return
		}
	}
	if r.phase == Running && !r.unsound() {
		r.phase = Done
		return
	}
	if r.phase == Running {
		r.fail()
	}
	var last *refUnit
	var name string
	for _, s := range r.steps {
		for _, unit := range s.units {
			if u := r.units[unit]; r.def.Undo && u.state == UnitDone && s.Undo != nil && (last == nil || u.order > last.order) {
				last, name = u, unit
			}
		}
	}
	switch {
	case last != nil:
		last.state, r.phase = UnitUndoing, Undoing
		last.time = r.begins(refTry{unit: name, try: last.try, undo: true})
	case r.cancelled:
		r.phase = Cancelled
	default:
		r.phase = Failed
	}
}

// String is all that is compared.
func (r *reference) String() string {
	phase := r.phase
	if r.paused && phase.Open() {
		phase = Paused
	}
	lines := []string{phase.String()}
	for _, s := range r.steps {
		for _, unit := range s.units {
			u := r.units[unit]
			lines = append(lines, fmt.Sprintf("%s %s %d %t %t", unit, u.state, u.try, u.asked && u.state == UnitMade, u.suspended))
		}
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}
