package shard

import (
	"cmp"
	"errors"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// deadlinesDue comes from the wheel: holds of this millisecond run out.
type deadlinesDue struct{ ms int64 }

// holdRegistry is the holds that a shard knows of, and the permits of those that it took
// under caps. What becomes of them makes room for subscriptions, and frees permits.
type holdRegistry struct {
	*shardState
	claim   *claimer
	table   agenda.HoldTable
	permits heldPermits   // freed when the shard hears that a hold is over
	unused  []agenda.Hold // allocated, see next
}

func (hs *holdRegistry) open() {
	deadlines := hs.OpenAlarms(func(ms int64) { hs.post(&deadlinesDue{ms}) })
	hs.table = agenda.NewHoldTable(deadlines)
}

func (hs *holdRegistry) close() { hs.table.Close() }

func (hs *holdRegistry) len() int { return hs.table.Len() }

// get returns the hold of a task under a token, nil when it has none or another one.
func (hs *holdRegistry) get(id string, token store.Token) *agenda.Hold {
	return hs.table.Get(id, token)
}

// has reports whether a task is held, as far as is known.
func (hs *holdRegistry) has(id string) bool { return hs.table.ByID[id] != nil }

// register adds a hold. Another one of the same task is over, though nobody told this
// node: it makes room for its subscription.
func (hs *holdRegistry) register(h *agenda.Hold) {
	if old := hs.table.Add(h); old != nil && old.Token != h.Token {
		hs.endPermit(old.ID, old.Token)
		hs.report.endHold(old)
	}
}

// unregister forgets the hold of a task under a token, and makes room for its
// subscription.
func (hs *holdRegistry) unregister(id string, token store.Token) {
	hs.endPermit(id, token)
	hs.tasks.HoldEnded(id)
	h := hs.get(id, token)
	if h == nil {
		return
	}
	hs.table.Remove(h)
	hs.report.endHold(h)
}

// move gives a hold another deadline, if it is not over.
func (hs *holdRegistry) move(id string, token store.Token, to store.Millis) {
	if h := hs.get(id, token); h != nil {
		hs.table.Move(h, to)
	}
}

// news reports whether a walk of the store's holds, which began when since holds had been
// added, has found one that is not known.
func (hs *holdRegistry) news(r *store.Running, since int64) bool {
	h := hs.table.ByID[r.ID]
	switch {
	case h == nil:
		return true
	case h.Token == r.Token:
		hs.table.Move(h, h.Deadline) // a timer that fired while the shard was not ours was not acted on
		return false
	}
	return h.Nth <= since // else it was granted since, so r is over
}

// expect watches for the end of holds that a call asked for, when nobody knows whether
// they were granted: no worker will settle them. The store says at their end whether they
// are there, or when that is: they may have begun as early as the call, which is repeated when
// its answer is lost.
func (hs *holdRegistry) expect(asked []store.Hold, began store.Millis, err error) {
	if !hs.claim.owned() || !errors.Is(err, store.ErrUnknown) {
		return
	}
	for _, h := range asked {
		hs.table.Expect(&agenda.Hold{ID: h.ID, Token: h.Token, Deadline: began.Add(h.Visibility)})
	}
}

// save returns copies of the holds that take room of a subscription.
func (hs *holdRegistry) save() (saved []*agenda.Hold) {
	for _, h := range ordered.All(hs.table.ByID, cmp.Compare) {
		if h.Sub != nil {
			next := *h
			next.Ending = nil
			saved = append(saved, &next)
		}
	}
	return saved
}

// restore takes over holds that were saved.
func (hs *holdRegistry) restore(saved []*agenda.Hold) {
	for _, h := range saved {
		hs.report.assign(h.Sub.HolderID(), 1)
		hs.table.Add(h)
	}
}

// permitted records that a task is held under a permit. That of an earlier hold is over.
func (hs *holdRegistry) permitted(id string, p *dispatch.Permit) {
	if old := hs.permits[id]; old != nil && old.Holder != p.Holder {
		hs.report.endPermit(old)
	}
	if hs.permits == nil {
		hs.permits = make(heldPermits)
	}
	hs.permits[id] = p
}

// endPermit frees what a hold that is over was held under.
func (hs *holdRegistry) endPermit(id string, token store.Token) {
	if p := hs.permits[id]; p != nil && p.Holder == token {
		delete(hs.permits, id)
		hs.report.endPermit(p)
	}
}

// forgetPermit leaves the permit of a hold to end by itself.
func (hs *holdRegistry) forgetPermit(id string) { delete(hs.permits, id) }

// holdChunk is how many holds are allocated together: the last of them to end keeps
// the others in memory.
const holdChunk = 8

// next returns where to put a hold.
func (hs *holdRegistry) next() *agenda.Hold {
	if len(hs.unused) == 0 {
		hs.unused = make([]agenda.Hold, holdChunk)
	}
	h := &hs.unused[0]
	hs.unused = hs.unused[1:]
	return h
}
