package actors_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	outbox "github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// Messages are conserved: what a queue or an out-box forgets has arrived where it goes, or is kept as undeliverable,
// or asks for something that may be asked twice. That is looked at in the very commit that forgets it, by books of
// the simulation's own.

// simMessages are the books of what was sent.
type simMessages struct {
	made      map[simArrived]int  // tasks and children by how often they came into being
	delivered map[simMessage]int  // what workflows were told
	sent      map[simArrived]bool // tasks that were sent, and are to be made once
	refused   map[simArrived]bool // and what is kept as undeliverable
	lost      map[simArrived]bool // what was told as lost already
	apart     map[simArrived]bool // tasks that one call made, and another one counts: where no queues are known
}

// simArrived is a task or a child of a topic.
type simArrived struct {
	topic string
	to    store.CellID
}

// simMessage is what a workflow is told.
type simMessage struct {
	to   store.CellID
	body string
}

func newSimMessages() simMessages {
	return simMessages{
		made: make(map[simArrived]int), delivered: make(map[simMessage]int),
		sent: make(map[simArrived]bool), refused: make(map[simArrived]bool), lost: make(map[simArrived]bool), apart: make(map[simArrived]bool),
	}
}

// forgotten are the messages of queues and of the out-box that each of some commits is about to forget.
func (s *sim) forgotten(m *memstore.Store, sh store.Shard, commits []store.Commit) [][]store.Message {
	all := make([][]store.Message, len(commits))
	for i := range commits {
		for _, number := range commits[i].Drop {
			found, err := m.Parcels(simContext, sh, store.OutBox, number-1, 1)
			if err != nil {
				panic(err) // memstore fails only when it is closed
			}
			if len(found) > 0 && found[0].Number == number {
				all[i] = append(all[i], found[0])
			}
		}
		if f := commits[i].Finish; f != nil {
			for _, message := range s.inQueue(m, f.Queue) {
				if slices.Contains(f.Numbers, message.Number) {
					all[i] = append(all[i], message)
				}
			}
		}
	}
	return all
}

// inQueue is all that is in a queue.
func (s *sim) inQueue(m *memstore.Store, q store.Queue) []store.Message {
	page, err := m.Messages(simContext, q.Source, q, 0, math.MaxInt32, math.MaxInt32)
	if err != nil || page.Next != 0 {
		panic(fmt.Sprint(page.Next, err)) // memstore fails only when it is closed
	}
	for i := range page.Messages {
		page.Messages[i].Topic = q.To
	}
	return page.Messages
}

// conserves writes down what a commit made and sent, and judges what it forgets.
func (s *sim) conserves(sh store.Shard, c *store.Commit, forgotten []store.Parcel) {
	for _, t := range c.Adds {
		s.arrives(sh.Topic, store.CellID(store.CellTask)+store.CellID(t.ID))
	}
	for _, put := range c.Puts {
		if put.ID.Kind() == store.CellWorkflow && put.If == 0 && len(put.Body) > 0 {
			s.messages.made[simArrived{sh.Topic, store.CellID(store.CellBegin) + store.CellID(put.ID.Key())}]++
		}
	}
	for i := range c.Send {
		switch p := &c.Send[i]; {
		case p.Topic == "":
			s.messages.delivered[simMessage{p.To, string(p.Body)}]++
		case outbox.HasTask(p):
			s.messages.sent[simArrived{p.Topic, p.To}] = true
		}
	}
	refused := len(s.messages.refused)
	for i := range forgotten {
		s.mayForget(sh, c, &forgotten[i])
	}
	if len(s.messages.refused) > refused+1 {
		s.sometimes("two tasks of a page are undeliverable")
	}
}

// arrives writes down that a task came into being.
func (s *sim) arrives(topic string, to store.CellID) {
	at := simArrived{topic, to}
	switch s.messages.made[at]++; {
	case s.messages.made[at] < 2 || !s.messages.sent[at]:
	case s.messages.apart[at]: // see docs/operating.md, on upgrades
		s.log("%s of %s is made anew", to.Key(), topic)
	default:
		s.broken("twice: the message %s of %s has become a task %d times", to.Key(), topic, s.messages.made[at])
	}
	if s.messages.refused[at] {
		s.broken("both: %s of %s is made, and was kept as undeliverable", to.Key(), topic)
	}
}

// mayForget judges that a message is forgotten by a commit.
func (s *sim) mayForget(sh store.Shard, c *store.Commit, p *store.Parcel) {
	at := simArrived{p.Topic, p.To}
	switch {
	case outbox.Asks(p) || s.messages.lost[at]:
		return
	case s.isRefused(c, p):
		if s.messages.refused[at] = true; s.messages.made[at] > 0 && outbox.HasTask(p) {
			s.broken("both: %s of %s is kept as undeliverable, and was made", p.To.Key(), p.Topic)
		}
		return
	case outbox.Brings(p):
		if s.messages.made[at] > 0 {
			return
		}
	case outbox.IsForWorkflow(p):
		if s.messages.delivered[simMessage{p.To, string(p.Body)}] > 0 || !s.isThere(p.Topic, p.To) {
			return
		}
	default:
		return // for a schedule, whose own books say whether each occurrence became something
	}
	s.messages.lost[at] = true
	s.brokenBy("conserved", "not conserved: %v forgets message %d, %s for %s of %s, which has not arrived", sh, p.Number, string(p.To.Kind()), p.To.Key(), p.Topic)
}

// isRefused reports whether a commit keeps a message as undeliverable, or tells the workflow that sent it.
func (s *sim) isRefused(c *store.Commit, p *store.Message) bool {
	for i := range c.Puts {
		if id := string(c.Puts[i].ID); c.Puts[i].ID.Kind() == store.CellRefused && strings.HasSuffix(id, fmt.Sprintf("/%s/%d", p.Topic, p.Number)) {
			return true
		}
	}
	if !outbox.Brings(p) {
		return false
	}
	failed, isStep := workflow.Refused(p, "", 0)
	if !isStep {
		return false
	}
	of, _ := workflow.Told(&failed.Send[0]).(workflow.Ended)
	// Others of its workflow may be refused in the same commit: what is told names the task, or that of the child.
	return slices.ContainsFunc(c.Send, func(told store.Message) bool {
		end, ends := workflow.Told(&told).(workflow.Ended)
		return told.To == failed.Send[0].To && ends && end.Task == of.Task
	})
}

// isThere reports whether a workflow is in some shard of a topic.
func (s *sim) isThere(topic string, id store.CellID) bool {
	for _, sh := range s.shardsOf(topic) {
		cells, err := s.on(sh).Cells(simContext, sh, []store.CellID{id})
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		if cells[0].Version != 0 {
			return true
		}
	}
	return false
}

// forgets is a store that lies about messages: it makes some commits without one that they send.
func (s *sim) forgets(commits []store.Commit) []store.Commit {
	crosses := func(p store.Message) bool { return p.Topic != "" && outbox.HasTask(&p) }
	if !s.plan.lies.messages || !s.chance(0.1) {
		return commits
	}
	commits = slices.Clone(commits)
	for i := range commits {
		if k := slices.IndexFunc(commits[i].Send, crosses); k >= 0 {
			commits[i].Send = slices.Delete(slices.Clone(commits[i].Send), k, k+1)
		}
	}
	return commits
}

// left is how many messages are on their way to other shards.
func (s *sim) left() (n int) {
	for _, sh := range s.shards() {
		m := s.on(sh)
		found, err := m.Parcels(simContext, sh, store.OutBox, 0, 1000)
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		queues, err := m.Queues(simContext, sh, store.Queue{}, 1000)
		if err != nil {
			panic(err)
		}
		n += len(found)
		for _, q := range queues {
			n += len(s.inQueue(m, q.Queue))
		}
	}
	return n
}

// auditMessages looks at the end whether every message has arrived.
func (s *sim) auditMessages() {
	if n := s.left(); n > 0 && s.keepsCells() {
		s.broken("stranded: %d messages have not arrived", n)
	}
	byName := func(a, b simArrived) int { return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.to, b.to)) }
	for _, at := range slices.SortedFunc(maps.Keys(s.messages.sent), byName) {
		if s.messages.made[at] == 0 && !s.messages.refused[at] && !s.messages.lost[at] {
			s.brokenBy("conserved", "not conserved: %s was sent to %s, and is nowhere", at.to.Key(), at.topic)
		}
	}
}
