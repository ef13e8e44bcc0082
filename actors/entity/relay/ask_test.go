package relay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// parent is a workflow of mail with one step in another topic, and what it sends at each event.
type parent struct {
	*rig
	w    *workflow.Workflow
	work store.Message
	unit string // the id of its task, or of its child
}

func (r *rig) parent(id string, step graph.Step) *parent {
	r.Helper()
	w, out := workflow.Submit(id, place.HashID(id), &graph.Definition{Steps: []graph.Step{step}}, workflow.Env{Now: 1, Topic: "mail"})
	p := &parent{rig: r, w: w}
	if len(out.Begin) > 0 {
		p.unit = out.Begin[0].ID
	} else {
		p.unit = out.Make[0].ID
	}
	p.work = p.sent(&out)
	return p
}

func (r *rig) withTask(topic, id string) *parent {
	return r.parent(id, graph.Step{Name: "a", Task: &graph.Template{Topic: topic, Task: store.Task{MaxRetries: -1}}})
}

func (r *rig) withChild(topic, id string) *parent {
	child := graph.Child{Topic: topic, Definition: graph.Definition{Steps: []graph.Step{{Name: "x", Wait: &graph.Wait{Signal: "x"}}}}}
	return r.parent(id, graph.Step{Name: "a", Child: &child})
}

func (p *parent) sent(out *workflow.Effects) store.Message {
	p.Helper()
	c, err := workflow.Commit(nil, p.w, out, workflow.Context{Topic: p.topics["mail"], Now: 1})
	if err != nil || len(c.Send) != 1 {
		p.Fatalf("%+v, %v", c, err)
	}
	return c.Send[0]
}

func (p *parent) on(e workflow.Event) store.Message {
	p.Helper()
	w, out, err := workflow.Apply(p.w, []workflow.Event{e}, workflow.Env{Now: 1, Topic: "mail"})
	if err != nil {
		p.Fatal(err)
	}
	p.w = w
	return p.sent(&out)
}

// in is where a child is.
func (p *parent) in(topic string) (shards []store.Shard) {
	p.Helper()
	for _, s := range place.Shards(p.topics[topic]) {
		cells, err := p.db.Cells(p.Context(), s, []store.CellID{workflow.CellID(p.unit)})
		if err != nil {
			p.Fatal(err)
		}
		if cells[0].Version != 0 {
			shards = append(shards, s)
		}
	}
	return shards
}

func (r *rig) inbox(s store.Shard) []store.Message {
	r.Helper()
	messages, err := r.db.Parcels(r.Context(), s, store.InBox, 0, 10_000)
	if err != nil {
		r.Fatal(err)
	}
	return messages
}

// tells checks the one end that a workflow of mail is told.
func (p *parent) tells(why workflow.Why) {
	p.Helper()
	n := 0
	for _, m := range p.inbox(p.ID) {
		if m.To != workflow.CellID(p.w.ID) {
			continue
		}
		n++
		if e, ok := workflow.Told(&m).(workflow.Ended); !ok || e.Outcome != workflow.UnitFailed || e.Why != why {
			p.Errorf("%s is told %+v, want %s", p.w.ID, workflow.Told(&m), why)
		}
	}
	if n != 1 {
		p.Errorf("%s is told %d ends", p.w.ID, n)
	}
}

// Children begin once each among tasks, also when answers are lost and their topic gets other shards.
func TestEachChildBeginsOnce(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 1))
			r.db.r, r.db.odds = rand.New(rand.NewPCG(seed, 0)), .3
			q := r.queue(store.ClassWork, "audit")
			r.db.before = func() {
				if random.IntN(4) == 0 {
					r.claims(random.IntN(2))
				}
				r.turn(random.IntN(2), q)
			}
			var all []*parent
			for i := range 30 {
				p := r.withChild("audit", fmt.Sprint("w", i))
				all = append(all, p)
				r.sends(store.ClassWork, p.work)
				r.send("audit", task(fmt.Sprint(i)))
				if r.turn(random.IntN(2), q); i == 15 {
					r.reshards()
				}
			}
			r.db.before, r.db.odds = nil, 0
			r.claims(0)
			r.settles(q)
			for _, p := range all {
				if at := p.in("audit"); len(at) != 1 {
					r.Errorf("seed %d: the child of %s is in %v", seed, p.w.ID, at)
				}
			}
			if r.drain("audit"); len(r.seen) != 30 || len(r.inbox(r.ID)) != 0 {
				r.Errorf("seed %d: %d tasks are made, %+v is told", seed, len(r.seen), r.inbox(r.ID))
			}
		})
	}
}

// A child that is sent again is there: also one that is sent twice in a page.
func TestAChildIsSentAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		p, q := r.withChild("audit", "w"), r.queue(store.ClassWork, "audit")
		for range 2 {
			r.sends(store.ClassWork, p.work, p.work)
			r.settles(q)
		}
		if at := p.in("audit"); len(at) != 1 || len(r.inbox(r.ID)) != 0 {
			r.Errorf("it is in %v, the workflow is told %+v", at, r.inbox(r.ID))
		}
	})
}

// The step of a task or a child whose topic does not take it fails, and there is no dead letter.
func TestStepsThatAreRefusedFail(t *testing.T) {
	inBubble(t, func(r *rig) {
		p, c, taken := r.withTask("nowhere", "w1"), r.withChild("nowhere", "w2"), r.withChild("audit", "w3")
		at := workflow.Shards(r.topics["audit"], "w3")[0]
		other := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID(taken.unit), Body: []byte("x")}}}}
		if _, results, err := r.db.Store.Commit(r.Context(), at.For(2), nil, []store.Commit{other}); err != nil || results[0].Status != store.OK {
			t.Fatal(results, err)
		}
		r.sends(store.ClassWork, p.work, c.work, taken.work)
		r.settles(r.queue(store.ClassWork, "nowhere"))
		r.settles(r.queue(store.ClassWork, "audit"))
		for _, p := range []*parent{p, c, taken} {
			p.tells(workflow.WhyRefused)
		}
		if dead := r.dead(); len(dead) != 0 {
			t.Errorf("dead letters are %v", dead)
		}
	})
}

// What is asked to end is deleted where it is pending. What waits for its topic is taken back, and its workflow told.
// To be paused, a child has to be there.
func TestAsksWaitForTheWorkThatTheyAreAbout(t *testing.T) {
	inBubble(t, func(r *rig) {
		work, asks := r.queue(store.ClassWork, "audit"), r.queue(store.ClassAsk, "audit")
		there := r.withTask("audit", "w1")
		r.sends(store.ClassWork, there.work)
		r.settles(work)
		r.topics["audit"].EnqueuePaused = true
		back, child, paused := r.withTask("audit", "w2"), r.withChild("audit", "w3"), r.withChild("audit", "w4")
		r.sends(store.ClassWork, back.work, child.work, paused.work)
		r.sends(store.ClassAsk, message.Ask("audit", there.unit, "w1"), message.Ask("audit", back.unit, "w2"), child.on(workflow.Cancel{}), paused.on(workflow.Pause{}))
		for range 3 {
			if out := r.turn(0, asks); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		back.tells(workflow.WhyDeleted)
		child.tells(workflow.WhyDeleted)
		if r.left(work) != 1 || r.left(asks) != 1 {
			t.Errorf("%d messages of work and %d asks are left", r.left(work), r.left(asks))
		}
		at := place.In(r.topics["audit"], r.topics["audit"].Active(), there.unit)
		if ends := r.inbox(at); len(ends) != 1 || ends[0].Ended == nil || ends[0].Ended.Kind != store.ChangeDeleted {
			t.Errorf("there it is told %+v", ends)
		}
		r.topics["audit"].EnqueuePaused = false
		r.settles(work)
		r.settles(asks)
		in := paused.in("audit")
		if len(in) != 1 || len(child.in("audit")) != 0 {
			t.Fatalf("the children are in %v and %v", in, child.in("audit"))
		}
		told := r.inbox(in[0])
		if e, ok := workflow.Told(&told[len(told)-1]).(workflow.Ordered); !ok || e.What != workflow.AskedToPause {
			t.Errorf("it is told %+v", told)
		}
	})
}

// Work that was made, and is in its queue until that is known, is asked where it is.
func TestAnAskTakesNothingBackThatWasMade(t *testing.T) {
	inBubble(t, func(r *rig) {
		work, asks := r.queue(store.ClassWork, "audit"), r.queue(store.ClassAsk, "audit")
		p := r.withTask("audit", "w1")
		r.sends(store.ClassWork, p.work)
		fence := r.owners[0].fence
		r.owners[0].fence.Epoch++ // a former owner makes it, and cannot forget it here
		if out := r.turn(0, work); out.Err == nil || r.left(work) != 1 {
			t.Fatalf("%+v, %d are left", out, r.left(work))
		}
		r.owners[0].fence = fence
		r.topics["audit"].EnqueuePaused = true
		r.sends(store.ClassAsk, message.Ask("audit", p.unit, "w1"))
		r.settles(asks)
		at := place.In(r.topics["audit"], r.topics["audit"].Active(), p.unit)
		if ends := r.inbox(at); len(ends) != 1 || ends[0].Ended == nil || ends[0].Ended.Kind != store.ChangeDeleted || len(r.inbox(r.ID)) != 0 {
			t.Errorf("there it is told %+v, and here %+v", ends, r.inbox(r.ID))
		}
	})
}

// Whoever asks a task to end in a topic that is gone is told that the task is.
func TestAnAskInVainIsAnswered(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.withTask("nowhere", "w1")
		r.sends(store.ClassAsk, message.Ask("nowhere", p.unit, "w1"))
		r.settles(r.queue(store.ClassAsk, "nowhere"))
		p.tells(workflow.WhyDeleted)
	})
}

// What waits in a former shard under the same id is the same, or is in the way.
func TestFormerShardsAreAskedForIDs(t *testing.T) {
	inBubble(t, func(r *rig) {
		same, other := task("same"), task("taken")
		other.Fingerprint, other.Payload = 1, []byte("other")
		for _, there := range []*store.Task{same, other} {
			if _, _, err := r.db.Add(r.Context(), place.In(r.topics["audit"], r.topics["audit"].Active(), there.ID).For(2), []*store.Task{there}); err != nil {
				t.Fatal(err)
			}
		}
		r.reshards()
		r.send("audit", task("same"), task("taken"), task("new"))
		r.settles(r.queue(store.ClassWork, "audit"))
		if r.drain("audit"); len(r.seen) != 3 || r.seen["same"] != 1 || r.seen["new"] != 1 || r.seen["other"] != 1 {
			t.Errorf("audit has %v", r.seen)
		}
		if dead := r.dead(); len(dead) != 1 || len(dead["taken"]) != 1 {
			t.Errorf("dead letters are %v", dead)
		}
	})
}
