package shard

import (
	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// notifier tells the shard's owner, and those who wait for tasks, what calls of this node
// changed, and learns what other nodes say of theirs. What it is told is compared with the
// store's seq: a notice may be lost.
type notifier struct {
	*shardState
	claim  *claimer
	loader *loader
	holds  *holdRegistry
	reread func() // the store was set back: what it has of the shard is to be read
	seqs   agenda.GapDetector
	doubt  bool // at the last look the store did not have what was heard of
}

func newNotifier(claim *claimer, loader *loader, holds *holdRegistry, reread func()) notifier {
	return notifier{shardState: claim.shardState, claim: claim, loader: loader, holds: holds, reread: reread}
}

// receive handles a message of the notifier.
func (n *notifier) receive(message any) {
	switch m := message.(type) {
	case *PendingChanged:
		n.becamePending(m.Seq, m.Tasks)
	case *PendingGone:
		n.gone(m.Seq, m.Ids)
	case *PendingElsewhere:
		n.learnPending(m)
	case *EndedElsewhere:
		n.learnEnded(m.Holds)
	case *GoneElsewhere:
		n.tasks.WereRemoved(m.Ids)
	case *WaitedElsewhere:
		n.learnWaiting(m)
	case *SeqSeen:
		n.checkSeq(m)
	}
}

// becamePending records that one store call of this node made tasks pending: the
// owner puts them into the wheel, another node tells the owner.
func (n *notifier) becamePending(seq int64, tasks []store.Entry) {
	if !n.claim.elsewhere() { // else there would be gaps for ever
		n.seqs.Heard(seq)
	}
	if !n.Fleet.Alone() && !n.claim.owned() {
		n.tellPending(seq, tasks)
	}
	n.learn(seq, tasks)
}

// learn records what the store call of a seq says of tasks. The answers of calls, and
// notices of them, may come in another order than the store made them.
func (n *notifier) learn(seq int64, tasks []store.Entry) {
	if n.seqs.Overtaken(seq) {
		n.tasks.WerePending(n.Now(), tasks...)
	} else {
		n.tasks.Pending(n.Now(), tasks...)
	}
}

// gone records that one store call deleted tasks.
func (n *notifier) gone(seq int64, ids []string) {
	if n.seqs.Overtaken(seq) {
		n.tasks.WereRemoved(ids)
	} else {
		n.tasks.Removed(ids)
	}
	n.tellGone(ids)
}

// tellPending tells the owner of tasks that are due within its horizon, which may be
// greater than the one here, and by its clock; and of the first of the others, until which it
// may doze.
func (n *notifier) tellPending(seq int64, tasks []store.Entry) {
	soon, limit := make([]store.Entry, 0, len(tasks)), n.Now().Add(MaxHorizon+watchSlack)
	var later *store.Entry
	for i, t := range tasks {
		switch {
		case t.Due <= limit:
			soon = append(soon, t)
		case later == nil || t.Due < later.Due:
			later = &tasks[i]
		}
	}
	if later != nil {
		soon = append(soon, *later)
	}
	n.Fleet.NotifyOwner(n.id, fleet.Notice{Pending: []fleet.PendingNotice{{Shard: n.id, Seq: seq, Tasks: soon}}})
}

// tellEnded tells the owner of holds that this node ended.
func (n *notifier) tellEnded(holds []fleet.EndedHold) {
	if !n.claim.owned() && len(holds) > 0 && !n.Fleet.Alone() {
		n.Fleet.NotifyOwner(n.id, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: n.id, Holds: holds}}})
	}
}

// learnPending records what another node says became pending.
func (n *notifier) learnPending(m *PendingElsewhere) {
	if !n.claim.owned() {
		return // whoever owns it finds the gap, or loads it with the claim
	}
	n.seqs.Heard(m.Seq)
	n.learn(m.Seq, m.Tasks)
}

// learnEnded records holds that another node ended.
func (n *notifier) learnEnded(holds []fleet.EndedHold) {
	for _, h := range holds {
		n.holds.unregister(h.ID, h.Token)
	}
	n.tellSettled(holds)
}

// checkSeq compares what was heard with the store. After a gap that stayed the
// window is read again: a notice was lost. All is when the store was set back.
func (n *notifier) checkSeq(m *SeqSeen) {
	if !n.claim.owned() {
		return
	}
	if n.seqs.SetBack(m.Seq, m.Server) {
		n.setBack(m)
		return
	}
	missed := n.seqs.Missed(m.Seq)
	agrees := n.seqs.Agrees(m.Seq)
	if !agrees {
		n.Use(&n.ref.Active) // look again soon
	}
	if missed {
		n.Metrics.MissedNotices.Inc()
		n.seqs.Restart(m.Seq, m.Server)
		n.tasks.Reread()
		n.loader.load()
		return
	}
	n.doubt = !agrees || m.Held && n.holds.len() == 0
	switch {
	case n.doubt:
		n.tasks.Unheard(n.Now())
	case m.Empty && n.claim.idle() && n.holds.len() == 0:
		n.dropHints()
	}
}

// setBack has everything read again: nobody tells of what was undone.
func (n *notifier) setBack(m *SeqSeen) {
	n.Log.Debug("store may have been set back", "topic", n.id.Topic, "shard", n.id.N)
	n.Metrics.SetBacks.Inc()
	n.Use(&n.ref.Active) // look again soon
	n.seqs.Restart(m.Seq, m.Server)
	n.tasks.Reread()
	n.reread()
}

// dropHints forgets tasks that are gone from the store: others may delete what this
// node has in its wheel.
func (n *notifier) dropHints() {
	if n.tasks.Empty() {
		return
	}
	n.tasks.Forget()
	n.tellTopic(&ReadyGone{Shard: n.id.N})
}

// tellSettled tells who waits for the tasks of holds that are over.
func (n *notifier) tellSettled(holds []fleet.EndedHold) {
	if !n.Waiters.Any() {
		return
	}
	ids := make([]string, len(holds))
	for i, h := range holds {
		ids[i] = h.ID
	}
	n.TellSettled(n.id, ids...)
}

// learnWaiting records that another node waits for tasks. Those of which nothing is known
// here when it is first said may be settled already: it is to look again.
func (n *notifier) learnWaiting(m *WaitedElsewhere) {
	n.Waiters.Want(n.id.Topic, m.Ids, m.Node)
	if !m.First {
		return
	}
	var unknown []string
	for _, id := range m.Ids {
		if !n.loader.wheel.Has(id) && !n.tasks.WithTopic(id) && !n.holds.has(id) {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		n.TellSettled(n.id, unknown...)
	}
}

// tellGone tells who waits for tasks that this node deleted, through the owner those at
// other nodes.
func (n *notifier) tellGone(ids []string) {
	n.TellSettled(n.id, ids...)
	if !n.claim.owned() {
		n.Fleet.NotifyOwner(n.id, fleet.Notice{Settled: []fleet.SettledNotice{{Shard: n.id, IDs: ids}}})
	}
}
