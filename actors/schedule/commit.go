package schedule

import (
	"bytes"
	"time"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// MaxBody is how large a schedule may be when it is put. What it comes to remember, such as
// open runs, has the rest of what a cell may have.
const MaxBody = store.MaxCell - 256<<10

// The lists of cells in a shard.
const (
	List        = "schedules" // of all that can be read, by name: all of them are listed at 0
	CorruptList = "corrupt"   // of those that cannot, which do not wake
)

// CellID names the cell of a schedule.
func CellID(name string) store.CellID {
	return store.CellID([]byte{store.CellSchedule}) + store.CellID(name)
}

// Listed is the position in the list of schedules behind that of a name.
func Listed(name string) store.Wake {
	if name == "" {
		return store.Wake{}
	}
	return store.Wake{ID: CellID(name)}
}

// FromCell reads the cell of a schedule.
func FromCell(c store.Cell) (*Schedule, error) { return Decode(c.ID.Key(), c.Body) }

// ClaimID names a claim of one who puts a schedule; no two are the same.
func ClaimID(name, token string) store.CellID {
	return store.CellID([]byte{store.CellClaim}) + store.CellID(name+"/"+token)
}

// Commit returns what a step comes to in the store: of s, which it returned, and its
// effects. The cell must have the version that the step was of, 0 for a new one. Tasks are
// made of the template for a topic, at a moment.
func Commit(s *Schedule, out *Effects, version int64, topic *store.Topic, now store.Millis) (store.Commit, error) {
	put := store.Put{Cell: store.Cell{ID: CellID(s.Name)}, If: version, First: store.FirstVersion(s.Life)}
	if !out.Gone {
		body, err := Encode(s)
		if err != nil {
			return store.Commit{}, err
		}
		put.Cell = store.Cell{ID: put.ID, Wake: out.Wake, List: List, Body: body}
	}
	c := out.asks()
	c.Puts = []store.Put{put}
	for i := range out.Make {
		if err := s.begin(&c, &out.Make[i], topic, now); err != nil {
			return store.Commit{}, err
		}
	}
	c.Removes = append(c.Removes, out.Remove...)
	return c, nil
}

// asks is a commit that asks open runs to end.
func (out *Effects) asks() (c store.Commit) {
	c.Cancels = out.Cancel
	for _, id := range out.Cancel {
		c.Removes = append(c.Removes, store.Remove{ID: id}) // when it is pending
	}
	for _, id := range out.CancelFlow {
		c.Send = append(c.Send, workflow.CancelParcel(id))
	}
	for _, id := range out.CancelWalk {
		c.Send = append(c.Send, store.Parcel{To: walkID(id), Body: CancelWalk()})
	}
	return c
}

// AskFormer is a commit that asks runs to end that began before a reshard, and the shards of a
// topic in which those may be, if the schedule is in shard n by now: the commit of a step reaches
// runs of its own shard alone. It is to come before that: what is asked for twice is asked for once.
func (out *Effects) AskFormer(t *store.Topic, name string, n int) (c store.Commit, former []store.Shard) {
	if len(out.Cancel)+len(out.CancelFlow)+len(out.CancelWalk) == 0 || !place.Resharding(t) {
		return c, nil
	}
	return out.asks(), Formers(t, name, n)
}

// begin adds a run to a commit: a task, a walk or a workflow.
func (s *Schedule) begin(c *store.Commit, m *Make, topic *store.Topic, now store.Millis) error {
	if m.of != nil {
		was := *s
		was.Spec, s = *m.of, &was
	}
	switch {
	case m.Walk:
		return s.putWalk(c, m)
	case m.Flow:
		return s.putFlow(c, m, now)
	}
	c.Adds = append(c.Adds, s.task(m, topic, now))
	return nil
}

// soon is how early a cell wakes of which its owner is to hear in any case: it looks at those
// that wake later by itself.
const soon = 2 * time.Minute

// Nudge has a commit of a user leave a parcel for the cell, which says nothing, when the cell
// wakes soon, or one that a run begins with: that the in-box has got further is seen by the owner within a second or so, also
// when nobody told it of the commit.
func Nudge(c *store.Commit, now store.Millis) {
	for i := range c.Puts {
		if put := &c.Puts[i]; put.Wake != 0 && put.Wake < now.Add(soon) {
			c.Send = append(c.Send, store.Parcel{To: c.Puts[0].ID, Body: []byte("look")})
			return
		}
	}
}

// task makes the task of a run.
func (s *Schedule) task(m *Make, topic *store.Topic, now store.Millis) *store.Task {
	t := s.Template.Make(m.ID, m.Due, now, topic)
	t.RunOf = &store.RunOf{Schedule: s.Name, Occurrence: m.At}
	if !s.Untracked {
		t.Tells = CellID(s.Name)
	}
	return t
}

// Landed reports whether a commit that is Stale is so because it was made before, and its
// answer lost: the cell is as it was to become.
func Landed(c *store.Commit, r *store.CommitResult) bool {
	put := &c.Puts[0]
	return r.Cell.Version == put.Next(put.If) && (len(put.Body) == 0 || r.Cell.Wake == put.Wake && bytes.Equal(r.Cell.Body, put.Body))
}

// Told is what the end of a task means to the schedule that it tells; nil for a parcel of
// which it knows nothing.
func Told(p *store.Parcel) Event {
	e := p.Ended
	if e == nil {
		return toldByBody(p)
	}
	ended := Ended{ID: e.ID, Outcome: Removed, At: p.At, Started: e.Started}
	switch {
	case e.Kind == store.ChangeRequeued:
		return Requeued{ID: e.ID}
	case e.Kind == store.ChangeDone:
		ended.Outcome = Done
	case e.Kind == store.ChangeDead && e.Reason != store.ReasonCancelled:
		ended.Outcome = Failed
	case e.Kind == store.ChangeDead:
		ended.Dead = true
	}
	return ended
}
