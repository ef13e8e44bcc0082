package courier

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// sends puts parcels into the out-box.
func (r *rig) sends(parcels ...store.Parcel) {
	r.Helper()
	if _, results, err := r.db.Store.Commit(r.Context(), r.ID, nil, []store.Commit{{Send: parcels}}); err != nil || results[0].Status != store.OK {
		r.Fatal(results, err)
	}
}

// inbox is what lies in the in-box of a shard.
func (r *rig) inbox(s store.Shard) []store.Parcel {
	r.Helper()
	parcels, err := r.db.Parcels(r.Context(), s, store.InBox, 0, 10_000)
	if err != nil {
		r.Fatal(err)
	}
	return parcels
}

// step is the task of the step of a workflow of this shard in another topic, as it is sent.
func (r *rig) step(topic, id string) (p store.Parcel, task string) {
	r.Helper()
	d := &graph.Definition{Steps: []graph.Step{{Name: "a", Task: &graph.Template{Topic: topic, Task: store.Task{MaxRetries: -1}}}}}
	w, out := workflow.Submit(id, place.HashID(id), d, workflow.Env{Now: 1, Topic: "mail"})
	c, err := workflow.Commit(nil, w, &out, workflow.Context{Topic: r.topics["mail"], Now: 1})
	if err != nil || len(c.Send) != 1 {
		r.Fatalf("%+v, %v", c, err)
	}
	return c.Send[0], out.Make[0].ID
}

// told is what the workflow of a parcel is told.
func told(t testing.TB, p *store.Parcel) workflow.Ended {
	t.Helper()
	e, ok := workflow.Told(p).(workflow.Ended)
	if !ok {
		t.Fatalf("%+v tells %+v", p, workflow.Told(p))
	}
	return e
}

// Ends come home once each, in order, also when answers are lost, while the topic takes no tasks, and
// past tasks that wait for it.
func TestEachEndComesHomeOnce(t *testing.T) {
	for seed := range uint64(50) {
		inBubble(t, func(r *rig) {
			r.db.odds, r.db.r = .3, rand.New(rand.NewPCG(seed, 0))
			r.topics["audit"].EnqueuePaused = true
			want := make(map[store.Shard]int)
			for i := range 60 {
				id := fmt.Sprint("w", i%7)
				want[workflow.Shards(r.topics["audit"], id)[0]]++
				r.send("audit", task(fmt.Sprint(i)))
				r.sends(store.Parcel{Topic: "audit", To: workflow.CellID(id), Body: []byte{byte(i)}})
			}
			r.rounds(func() {})
			if left := r.left(); left != 60 {
				r.Errorf("seed %d: %d parcels are left", seed, left)
			}
			for s, n := range want {
				last := -1
				got := r.inbox(s)
				for _, p := range got {
					if int(p.Body[0]) <= last {
						r.Errorf("seed %d: end %d comes behind %d", seed, p.Body[0], last)
					}
					last = int(p.Body[0])
				}
				if len(got) != n {
					r.Errorf("seed %d: %d of %d ends are in shard %d", seed, len(got), n, s.N)
				}
			}
		})
	}
}

// A workflow is found in the generation of shards in which it began, and what is for one that is gone
// is forgotten.
func TestEndsFindTheirWorkflow(t *testing.T) {
	inBubble(t, func(r *rig) {
		was := workflow.Shards(r.topics["audit"], "w")[0]
		header := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID("w"), Body: []byte("x")}}}}
		if _, results, err := r.db.Store.Commit(r.Context(), was.For(2), nil, []store.Commit{header}); err != nil || results[0].Status != store.OK {
			r.Fatal(results, err)
		}
		r.topics["audit"] = &store.Topic{Name: "audit", Life: 2, MaxPayload: 100, First: 3, Shards: 5, Former: [store.MaxFormer]store.Span{{Shards: 3}}}
		r.sends(
			store.Parcel{Topic: "audit", To: workflow.CellID("gone"), Body: []byte("x")},
			store.Parcel{Topic: "audit", To: workflow.CellID("w"), Body: []byte("x")},
			store.Parcel{Topic: "nowhere", To: workflow.CellID("w"), Body: []byte("x")},
		)
		r.rounds(func() {})
		if got := r.inbox(was); len(got) != 1 || r.left() != 0 {
			r.Errorf("the shard got %+v, %d parcels are left", got, r.left())
		}
	})
}

// A step whose topic refuses its task for good is told so, and is no undeliverable task.
func TestStepsThatAreRefusedFail(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.db.odds = .3
		lost, id := r.step("nowhere", "w1")
		r.sends(lost)
		r.rounds(func() {})
		got := r.inbox(r.ID)
		if len(got) != 1 || got[0].To != workflow.CellID("w1") || r.left() != 0 {
			r.Fatalf("the workflow is told %+v, %d parcels are left", got, r.left())
		}
		if e := told(t, &got[0]); e.Task != id || e.Outcome != workflow.UnitFailed || e.Why != workflow.WhyRefused || e.Error == "" {
			r.Errorf("it is told %+v", e)
		}
		if cells, err := r.db.Listed(r.Context(), r.ID, sent.List, store.Wake{}, 10); err != nil || len(cells) != 0 {
			r.Errorf("%d tasks are undeliverable, %v", len(cells), err)
		}
	})
}

// What is asked to end is deleted where it is pending. What still waits for its topic is taken back, and
// the workflow told.
func TestStepsAreAskedToEnd(t *testing.T) {
	inBubble(t, func(r *rig) {
		there, id := r.step("audit", "w1")
		r.sends(there)
		r.rounds(func() {})
		r.topics["audit"].EnqueuePaused = true
		waits, other := r.step("audit", "w2")
		stays, _ := r.step("audit", "w3")
		r.sends(waits, stays, sent.Ask("audit", id, "w1"), sent.Ask("audit", other, "w2"))
		r.rounds(func() {})
		if r.left() != 1 {
			r.Errorf("%d parcels are left", r.left())
		}
		got := r.inbox(r.ID)
		if len(got) != 1 || told(t, &got[0]).Task != other || got[0].To != workflow.CellID("w2") {
			r.Errorf("here it is told %+v", got)
		}
		at := place.In(r.topics["audit"], r.topics["audit"].Active(), id)
		ends := r.inbox(at)
		if len(ends) != 1 || ends[0].Ended == nil || ends[0].Ended.Kind != store.ChangeDeleted || !workflow.GoesHome(&ends[0]) {
			r.Errorf("there it is told %+v", ends)
		}
		r.topics["audit"].EnqueuePaused = false
		r.rounds(func() {})
		if seen := make(map[string]int); r.left() != 0 {
			r.Errorf("%d parcels are left", r.left())
		} else if r.take("audit", seen); len(seen) != 1 {
			r.Errorf("audit has %v", seen)
		}
	})
}

// A task that arrived, and is asked to end before that is known here, is asked there.
func TestAnAskKnowsWhatArrived(t *testing.T) {
	inBubble(t, func(r *rig) {
		p, id := r.step("audit", "w1")
		r.sends(p, sent.Ask("audit", id, "w1"))
		r.rounds(func() {})
		at := place.In(r.topics["audit"], r.topics["audit"].Active(), id)
		if ends := r.inbox(at); len(ends) != 1 || ends[0].Ended.Kind != store.ChangeDeleted || r.left() != 0 || len(r.inbox(r.ID)) != 0 {
			r.Errorf("there it is told %+v, %d parcels are left", ends, r.left())
		}
	})
}

// Whoever asks a task to end in a topic that is gone is told that the task is.
func TestAnAskInVainIsAnswered(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.sends(sent.Ask("nowhere", "t1", "w1"))
		r.rounds(func() {})
		got := r.inbox(r.ID)
		if len(got) != 1 || told(t, &got[0]).Task != "t1" || got[0].To != workflow.CellID("w1") || r.left() != 0 {
			r.Errorf("it is told %+v, %d parcels are left", got, r.left())
		}
	})
}

// A node hears a second later that a topic has other shards. The end of the step of a workflow that began
// in one of these is not lost meanwhile.
func TestEndsFindAWorkflowInShardsThatTheNodeDoesNotKnow(t *testing.T) {
	inBubble(t, func(r *rig) {
		now := store.Topic{Name: "audit", Life: 2, MaxPayload: 100, First: 3, Shards: 5, Former: [store.MaxFormer]store.Span{{Shards: 3}}}
		r.stored = map[string]*store.Topic{"audit": &now}
		home := workflow.Shards(&now, "w")[0]
		if home.N < now.First {
			t.Fatalf("the newest shard is %d", home.N)
		}
		header := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID("w"), Body: []byte("x")}}}}
		if _, results, err := r.db.Store.Commit(r.Context(), home.For(2), nil, []store.Commit{header}); err != nil || results[0].Status != store.OK {
			r.Fatal(results, err)
		}
		r.sends(store.Parcel{Topic: "audit", To: workflow.CellID("w"), Body: []byte("x")})
		r.rounds(func() {})
		if got := r.inbox(home); len(got) != 1 || r.left() != 0 {
			r.Errorf("shard %d got %+v, %d parcels are left", home.N, got, r.left())
		}
	})
}
