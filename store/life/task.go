package life

import "github.com/ddq-io/ddq/store"

// Phase is where a task is in its life, as far as rules depend on it.
type Phase uint8

const (
	Absent     Phase = iota
	Pending          // scheduled, ready or retrying
	Unreadable       // pending, with a record that cannot be read
	Running
	Done
	Dead // or expired
)

// Live reports whether a task is unfinished, so that its id and key are taken.
func (p Phase) Live() bool { return p == Pending || p == Unreadable || p == Running }

// PhaseOf is the phase of a task that others see in a state.
func PhaseOf(s store.State) Phase {
	switch {
	case s.Pending():
		return Pending
	case s == store.StateRunning:
		return Running
	case s == store.StateDone:
		return Done
	case s == store.StateDead || s == store.StateExpired:
		return Dead
	}
	return Absent
}

// Task is what rules depend on of a task. Those that are not asked about it need not be set.
type Task struct {
	Phase    Phase
	Token    store.Token  // running: of the hold; done: of the one that ended it
	Deadline store.Millis // running
	Due      store.Millis // pending
	Expires  store.Millis // pending; 0: never
	Ordered  bool         // pending: it has an ordering key
}

// expired reports whether a pending task may not be held any more.
func (t *Task) expired(now store.Millis) bool { return t.Expires != 0 && t.Expires <= now }
