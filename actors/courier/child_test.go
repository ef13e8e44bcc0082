package courier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// parent is a workflow of this shard with a child in another topic, and what is sent for it at each event.
type parent struct {
	*rig
	w     *workflow.Workflow
	begin store.Parcel
	child string // its id
}

func (r *rig) parent(topic, id string) *parent {
	r.Helper()
	child := graph.Child{Topic: topic, Definition: graph.Definition{Steps: []graph.Step{{Name: "x", Wait: &graph.Wait{Signal: "x"}}}}}
	w, out := workflow.Submit(id, place.HashID(id), &graph.Definition{Steps: []graph.Step{{Name: "a", Child: &child}}}, workflow.Env{Now: 1, Topic: "mail"})
	p := &parent{rig: r, w: w, child: out.Begin[0].ID}
	p.begin = p.sent(w, &out)
	return p
}

// sent is what one step of it sends.
func (p *parent) sent(w *workflow.Workflow, out *workflow.Effects) store.Parcel {
	p.Helper()
	c, err := workflow.Commit(nil, w, out, workflow.Context{Topic: p.topics["mail"], Now: 1})
	if err != nil || len(c.Send) != 1 {
		p.Fatalf("%+v, %v", c, err)
	}
	return c.Send[0]
}

// on is what is sent when something happens to it.
func (p *parent) on(e workflow.Event) store.Parcel {
	p.Helper()
	w, out, err := workflow.Apply(p.w, []workflow.Event{e}, workflow.Env{Now: 1, Topic: "mail"})
	if err != nil {
		p.Fatal(err)
	}
	p.w = w
	return p.sent(w, &out)
}

// in is where its child is, and how often.
func (p *parent) in(topic string) (shards []store.Shard) {
	p.Helper()
	for _, s := range place.Shards(p.topics[topic]) {
		cells, err := p.db.Cells(p.Context(), s, []store.CellID{workflow.CellID(p.child)})
		if err != nil {
			p.Fatal(err)
		}
		if cells[0].Version != 0 {
			shards = append(shards, s)
		}
	}
	return shards
}

// Children begin once each, also when answers are lost, among tasks.
func TestEachChildBeginsOnce(t *testing.T) {
	for seed := range uint64(15) {
		inBubble(t, func(r *rig) {
			r.db.odds, r.db.r = .3, rand.New(rand.NewPCG(seed, 0))
			if seed%2 == 0 { // a commit that was made is found to be, instead of made anew by the next round
				r.Resolve = func(_ context.Context, call func() error) (bool, error) {
					for {
						if err := call(); !errors.Is(err, errBroken) {
							return true, err
						}
					}
				}
			}
			var all []*parent
			for i := range 30 {
				p := r.parent("audit", fmt.Sprint("w", i))
				all = append(all, p)
				r.sends(p.begin, p.on(workflow.Pause{}))
				r.send("audit", task(fmt.Sprint(i)))
			}
			r.rounds(func() {})
			seen := make(map[string]int)
			r.take("audit", seen)
			if r.left() != 0 || len(seen) != 30 || len(r.inbox(r.ID)) != 0 {
				r.Errorf("seed %d: %d parcels are left, %d tasks made, and %d workflows told", seed, r.left(), len(seen), len(r.inbox(r.ID)))
			}
			for _, p := range all {
				at := p.in("audit")
				if len(at) != 1 || at[0] != workflow.Shards(r.topics["audit"], p.w.ID)[0] {
					r.Errorf("seed %d: the child of %s is in %v", seed, p.w.ID, at)
					continue
				}
				orders := 0
				for _, told := range r.inbox(at[0]) {
					if e, is := workflow.Told(&told).(workflow.Ordered); is && told.To == workflow.CellID(p.child) && e.What == workflow.AskedToPause {
						orders++
					}
				}
				if orders == 0 {
					r.Errorf("seed %d: the child of %s is not told to pause", seed, p.w.ID)
				}
			}
		})
	}
}

// One that waits for its topic is taken back when it is to end. To be paused, it has to be there.
func TestWhatIsAskedOfAChildWaitsForIt(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["audit"].EnqueuePaused = true
		ended, paused := r.parent("audit", "w1"), r.parent("audit", "w2")
		r.sends(ended.begin, paused.begin, paused.on(workflow.Pause{}), ended.on(workflow.Cancel{}))
		if out := r.rounds(func() {}); !out.Waits || r.left() != 2 {
			r.Errorf("it waits: %t, %d parcels are left", out.Waits, r.left())
		}
		got := r.inbox(r.ID)
		if len(got) != 1 || got[0].To != workflow.CellID("w1") || told(t, &got[0]).Why != workflow.WhyDeleted {
			r.Errorf("here it is told %+v", got)
		}
		r.topics["audit"].EnqueuePaused = false
		r.rounds(func() {})
		at := paused.in("audit")
		if len(at) != 1 || len(ended.in("audit")) != 0 || r.left() != 0 {
			r.Fatalf("the children are in %v and %v, %d parcels are left", at, ended.in("audit"), r.left())
		}
		if in := r.inbox(at[0]); len(in) != 2 || workflow.Told(&in[1]) != (workflow.Ordered{What: workflow.AskedToPause, Number: 2}) {
			r.Errorf("there it is told %+v", in)
		}
	})
}

// A child whose topic is not there fails its step, and so does one whose topic goes.
func TestAChildOfATopicThatIsNotThere(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.parent("nowhere", "w")
		r.sends(p.begin)
		r.rounds(func() {})
		r.sends(p.on(workflow.Pause{}))
		r.rounds(func() {})
		got := r.inbox(r.ID)
		if len(got) != 2 || r.left() != 0 {
			r.Fatalf("it is told %+v, %d parcels are left", got, r.left())
		}
		for i, why := range []workflow.Why{workflow.WhyRefused, workflow.WhyDeleted} {
			e := told(t, &got[i])
			if e.Why != why || e.Outcome != workflow.UnitFailed || got[i].To != workflow.CellID("w") {
				r.Errorf("it is told %+v, want %s", e, why)
			}
			if after, _ := workflow.Take(p.w, []store.Parcel{got[i]}, nil, workflow.Env{Now: 2, Topic: "mail"}); after.Units[0].State != workflow.UnitFailed {
				r.Errorf("its step is %s", after.Units[0].State)
			}
		}
	})
}

// A child that is sent again, as what made its step was undone by a failover and made anew, is there.
func TestAChildIsSentAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.parent("audit", "w")
		for range 2 {
			r.sends(p.begin)
			r.rounds(func() {})
		}
		if at := p.in("audit"); len(at) != 1 || len(r.inbox(r.ID)) != 0 || r.left() != 0 {
			r.Errorf("it is in %v, the workflow is told %+v, %d parcels are left", at, r.inbox(r.ID), r.left())
		}
	})
}

// The id of another workflow is not taken.
func TestAChildTakesNobodysID(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.parent("audit", "w")
		at := workflow.Shards(r.topics["audit"], "w")[0]
		other := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID(p.child), Body: []byte("x")}}}}
		if _, results, err := r.db.Store.Commit(r.Context(), at.For(2), nil, []store.Commit{other}); err != nil || results[0].Status != store.OK {
			r.Fatal(results, err)
		}
		r.sends(p.begin)
		r.rounds(func() {})
		got := r.inbox(r.ID)
		if len(got) != 1 || told(t, &got[0]).Why != workflow.WhyRefused || r.left() != 0 {
			r.Errorf("it is told %+v, %d parcels are left", got, r.left())
		}
	})
}

// A child that arrived in a shard of before is not begun anew in one of now, and is found there.
func TestAChildStaysWhereItBegan(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.parent("audit", "w")
		r.sends(p.begin)
		reshard := func() {
			now := *r.topics["audit"]
			now.First, now.Shards, now.Former[0] = 3, 5, store.Span{Shards: 3}
			r.stored = map[string]*store.Topic{"audit": &now}
		}
		r.db.drops = func() { // it has arrived, and that is not known here yet
			reshard()
			r.rounds(func() {})
		}
		r.rounds(func() {})
		at := p.in("audit")
		r.sends(p.on(workflow.Cancel{}))
		r.rounds(func() {})
		r.topics["audit"] = r.stored["audit"]
		if all := p.in("audit"); len(at) != 1 || len(all) != 1 {
			r.Fatalf("it is in %v, then in %v", at, all)
		}
		if in := r.inbox(at[0]); len(in) != 2 || r.left() != 0 {
			r.Errorf("it is told %+v, %d parcels are left", in, r.left())
		}
		// The node does not know of the new shards: the next child begins in one of them all the same.
		r.topics["audit"] = &store.Topic{Name: "audit", Life: 2, Shards: 3, MaxPayload: 100}
		next := r.parent("audit", "x")
		r.sends(next.begin)
		r.rounds(func() {})
		r.topics["audit"] = r.stored["audit"]
		if at := next.in("audit"); len(at) != 1 || at[0].N < 3 {
			r.Errorf("the next one is in %v", at)
		}
	})
}
