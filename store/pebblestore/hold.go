package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Hold takes pending, due tasks for workers.
func (s *shardOwner) Hold(ctx context.Context, name store.Shard, f store.Fence, wanted []store.Hold) (store.Stamp, []store.HoldResult, error) {
	results := make([]store.HoldResult, len(wanted))
	tasks := make([]store.Task, len(wanted)) // one allocation: they go to workers together
	stamp, err := s.change(ctx, name, access{fence: &f}, func(t *transaction) (err error) {
		h := holder{transaction: t, coming: len(wanted)}
		var bodies store.Bodies
		for i := range wanted {
			if bodies.Full() {
				results[i] = store.HoldResult{Status: store.LeftOut}
				continue
			}
			if results[i], err = h.hold(&wanted[i], &tasks[i]); err != nil {
				return err
			}
			if results[i].Status == store.OK {
				bodies.Add(&tasks[i])
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// holder begins holds.
type holder struct {
	*transaction
	coming   int    // holds that the call may begin, as far as it says
	unused   []hold // allocated, see room
	payloads []byte // of tasks that were held, and room for more

	worker, node, by string // of the last hold, see who
}

// hold takes one task, which it writes to task.
func (t *holder) hold(want *store.Hold, task *store.Task) (store.HoldResult, error) {
	if err := t.item(want.ID); err != nil {
		return store.HoldResult{}, err
	}
	e, f, err := t.findRecent(want.ID)
	if err != nil {
		return store.HoldResult{}, err
	}
	if h := t.sh.holds.get(want.ID); h != nil {
		return t.heldBefore(h, want, task, &e, f)
	}
	rules := e.life(f)
	rules.Ordered = want.Ahead > 0 && e.place() != nil
	switch status := life.Hold(&rules, want, t.ms); status {
	case store.OK:
	case store.Corrupt:
		return store.HoldResult{Status: status}, t.bury(want.ID, &e, f)
	case store.Expired:
		return store.HoldResult{Status: status}, t.expire(want.ID, &e)
	case store.NotDue:
		return store.HoldResult{Status: status, Due: e.due}, nil
	default:
		return store.HoldResult{Status: status}, nil
	}
	switch head, searched, err := t.line.behind(e.traits(), want.ID); {
	case err != nil:
		return store.HoldResult{}, err
	case head != nil:
		return store.HoldResult{Status: store.Behind, Head: head.ID, Due: head.Due}, nil
	case searched:
		if e, f, err = t.find(want.ID); err != nil {
			return store.HoldResult{}, err
		}
	}
	if life.Late(want, t.ms) {
		return store.HoldResult{Status: store.Late}, nil
	}
	if err := t.read(task, want.ID, &e); err != nil {
		return store.HoldResult{Status: store.Corrupt}, t.bury(want.ID, &e, f)
	}
	h := t.newHold(want.ID, want, &e)
	h.told = e.told()
	if task.Journal, err = t.journals.of(h); err != nil {
		return store.HoldResult{}, err
	}
	t.next.begin(h)
	t.log.tellHeld(h, store.Change{Kind: store.ChangeHeld, Due: e.due, Attempt: h.attempt, Version: e.edits + 1}, &e)
	task.Attempt = h.attempt
	return store.HoldResult{Status: store.OK, Task: task, Due: e.due, Deadline: h.deadline}, t.tasks.removePending(e.due, h.id, e.traits())
}

// payloadChunk is how many bytes of payloads are allocated together at most. They are
// in flight to workers at the same time.
const payloadChunk = 16 << 10

// read writes a task that is to be held, with its payload in one piece of memory with
// those of others.
func (t *holder) read(task *store.Task, id string, e *entry) error {
	n := len(e.body) // no payload is longer
	if n > cap(t.payloads)-len(t.payloads) {
		t.payloads = make([]byte, 0, max(n, min(n*max(t.coming-len(t.next.begun), 1), payloadChunk)))
	}
	used := len(t.payloads)
	task.Payload = t.payloads[used : used : used+n]
	if err := e.read(task, id); err != nil {
		return err
	}
	if len(task.Payload) == 0 {
		task.Payload = nil
	}
	t.payloads = t.payloads[:used+len(task.Payload)]
	return nil
}

// heldBefore is the outcome of holding a task that is held: by this very request,
// when it is a repeated one.
func (t *holder) heldBefore(h *hold, want *store.Hold, task *store.Task, e *entry, f found) (result store.HoldResult, err error) {
	rules := h.life()
	if f != readable || life.Hold(&rules, want, t.ms) != store.Held {
		return store.HoldResult{Status: store.WrongState}, nil
	}
	if err := e.read(task, want.ID); err != nil {
		return store.HoldResult{Status: store.WrongState}, nil
	}
	task.Attempt = h.attempt
	task.Journal, err = t.journals.of(h)
	return store.HoldResult{Status: store.OK, Task: task, Due: e.due, Deadline: h.deadline}, err
}

// expire makes a dead letter of a pending task that nobody took in time.
func (t *holder) expire(id string, e *entry) error {
	if err := t.endPending(e, store.Change{Kind: store.ChangeDead, ID: id, Attempt: e.attempt, Reason: store.ReasonExpired}); err != nil {
		return err
	}
	return t.tasks.addDead(id, e, store.ReasonExpired)
}

// newHold is the hold that want asks for. The attempt counts from here on, so a
// worker that crashes still uses one up.
func (t *holder) newHold(id string, want *store.Hold, e *entry) *hold {
	h, begins := t.room(), t.moment().From(e.due)
	*h = hold{
		id:            id,
		token:         want.Token,
		deadline:      begins.Deadline(e.visibility, want.Visibility, want.Until),
		attempt:       e.attempt + 1,
		by:            t.who(want),
		started:       begins.Millis(),
		stamp:         e.stamp,
		taskRewritten: e.rewritten,
		taskHistory:   e.history,
		taskSays:      e.says(),
		taskJournal:   e.journal,
		place:         e.place(),
	}
	return h
}

// who is whoOf those who want a task: mostly the same as for the task before.
func (t *holder) who(want *store.Hold) string {
	if t.by == "" || t.worker != want.Worker || t.node != want.Node {
		t.worker, t.node, t.by = want.Worker, want.Node, whoOf(want.Worker, want.Node)
	}
	return t.by
}

// holdChunk is how many holds are allocated together at most. The last of them to
// end keeps the others in memory.
const holdChunk = 16

// room returns where to put a hold.
func (t *holder) room() *hold {
	if len(t.unused) == 0 {
		t.unused = make([]hold, min(max(t.coming-len(t.next.begun), 1), holdChunk))
	}
	h := &t.unused[0]
	t.unused = t.unused[1:]
	return h
}
