package actors_test

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
)

// What actors count must agree with what there is. It is looked at after every step: what
// always holds at once, and what messages and calls under way may change once there are none.

// simBreaches is how many breaches of a run are told.
const simBreaches = 3

// probe sees every message of the node's actors.
func (n *simNode) probe(who actor.Actor, id string, message any) {
	if n.dead.Load() {
		return
	}
	n.s.jostle()
	switch message.(type) {
	case *actor.Stopping, *actor.Stopped, *actor.Restarting:
		delete(n.actors, id)
		delete(n.fallen, id)
	case *actor.Started:
		n.actors[id] = who
	case *actor.PoisonPill: // the library stops the actor: no code runs here that could panic
		n.actors[id] = who
	default:
		n.actors[id] = who
		if n.fatal[id] && !actors.Assigns(message) {
			delete(n.fatal, id)
			n.fallen[id] = true
			n.s.excuse(0) // what a notice told is lost, and the actor may have been quiet for long
			n.s.log("%s %s panics at %T", n.key, id, message)
			panic("simulated")
		}
	}
}

// check looks at the actors of a node.
func (s *sim) check(n *simNode) {
	if n.dead.Load() || len(s.breach) >= simBreaches {
		return
	}
	quiet := !n.paused && !n.sys.Looks() && len(n.backlog)+len(n.fallen) == 0 && !slices.ContainsFunc(s.ready, func(j simJob) bool { return j.node == n })
	for id, a := range n.actors {
		if t, ok := actors.PeekTopic(a); ok {
			s.checkTopic(n, id, t, quiet)
		}
		if sh, ok := actors.PeekShard(a); ok {
			s.checkCalls(n, id, sh.Calls())
			if !quiet {
				continue
			}
			if fault := sh.Fault(); fault != "" { // it looks at each task
				s.broken("%s %s: %s", n.key, id, fault)
			}
		}
	}
}

func (s *sim) checkCalls(n *simNode, id string, calls []int) {
	if slices.Min(calls) < 0 {
		s.broken("%s %s: more calls ended than were made: %v", n.key, id, calls)
	}
}

func (s *sim) checkTopic(n *simNode, id string, t actors.TopicPeek, quiet bool) {
	s.checkCalls(n, id, t.Calls())
	if fault := t.Fault(); fault != "" {
		s.broken("%s %s: %s", n.key, id, fault)
	}
	held, assigning := map[int64]int{}, t.Asking()
	for other, a := range n.actors {
		if sh, ok := actors.PeekShard(a); ok && strings.HasPrefix(other, id+"/") {
			sh.CountHolds(held)
			assigning = assigning || sh.Assigning()
		}
	}
	if !quiet || assigning {
		return
	}
	if way := t.Unheld(); way != 0 {
		s.broken("%s %s: %d tasks count as not held, and none is assigned", n.key, id, way)
	}
	subs := t.Subs()
	for _, sub := range subs {
		s.checkSub(n, id, t, &sub, held[sub.ID])
	}
	s.checkStreams(n, id, t.Name(), subs)
}

// leaves looks whether deliveries leave a node before their due times, by the clock of
// their shards' primaries. They may be held by then.
func (s *sim) leaves(to string, ds []subscription.Delivery) {
	for _, d := range ds {
		if now := s.now(s.shardOf(d.Task.ID)); d.Task.Due > now {
			s.broken("%s is sent to %s %d ms before it is due", d.Task.ID, to, d.Task.Due-now)
		}
		s.lasts(to, &d)
	}
}

// lasts looks whether a delivery says that its hold lasts longer than it does in the store.
func (s *sim) lasts(to string, d *subscription.Delivery) {
	_, token, _ := subscription.DecodeToken(d.Token) // which the node has made
	sh := s.shardOf(d.Task.ID)
	_, found, err := s.on(sh).Get(simContext, sh, []string{d.Task.ID})
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	left := found[0].Deadline.Time().Sub(s.now(sh).Time())
	if found[0].Token == token && d.HoldFor > left {
		s.brokenBy("hold", "%s is sent to %s as held for %v, and is for %v", d.Task.ID, to, d.HoldFor, left)
	}
}

// checkStreams looks for a stream that is open, and that its topic does not serve: nobody told
// it to begin anew, so it would wait for ever.
func (s *sim) checkStreams(n *simNode, id, topic string, subs []actors.SubPeek) {
	for _, w := range n.workers {
		served := slices.ContainsFunc(subs, func(sub actors.SubPeek) bool { return sub.Out == subscription.Outbox(w) })
		if w.topic == topic && !served && !w.gone.Load() && !w.drained {
			s.broken("%s %s: the stream of %s is open, and nobody serves it", n.key, id, w.c.name)
		}
	}
}

// drained reports whether a stream was told to begin anew: what was lost with the actor of
// its worker is settled when it ends.
func drained(o subscription.Outbox) bool {
	switch o := o.(type) {
	case *simWorker:
		return o.drained
	case *simPoll:
		return o.drained
	case *simLink:
		return o.drained
	}
	return false
}

// checkSub compares what a subscription counts with what it has.
func (s *sim) checkSub(n *simNode, id string, t actors.TopicPeek, sub *actors.SubPeek, held int) {
	linked := t.Linked(sub.ID)
	if sub.InFlight != held+linked {
		s.broken("%s %s: subscription %d counts %d tasks in flight, and has %d here and %d elsewhere",
			n.key, id, sub.ID, sub.InFlight, held, linked)
	}
	if sub.Assigned != int64(linked) || sub.Unsent != 0 && !drained(sub.Out) {
		s.broken("%s %s: subscription %d counts %d tasks that are not held, and %d are asked for elsewhere; %d bytes are unsent",
			n.key, id, sub.ID, sub.Assigned, linked, sub.Unsent)
	}
	if sub.Credit < 0 || sub.Credit > sub.Max {
		s.broken("%s %s: subscription %d has credit %d of %d", n.key, id, sub.ID, sub.Credit, sub.Max)
	}
	if w, ok := sub.Out.(*simWorker); ok && !w.gone.Load() && !drained(w) && sub.Credit+linked != w.granted-w.sent {
		s.broken("%s %s: %s granted %d more than it got, and its credit is %d here and %d elsewhere",
			n.key, id, w.c.name, w.granted-w.sent, sub.Credit, linked)
	}
}
