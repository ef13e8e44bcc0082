package agenda

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Alarms tell the owner of a shard when a millisecond has come.
type Alarms interface {
	Set(ms store.Millis)
	Clear(ms store.Millis)
	// Take returns what was set for a moment, which is over then.
	Take(ms store.Millis) []store.Millis
	Close()
}

// HoldTable are the holds that a shard knows of, by task and by the millisecond in which
// they run out. Those taken together run out together: the wheel has one entry for
// all of them, and a hold that ends in time is only counted out.
type HoldTable struct {
	ByID   map[string]*Hold
	ends   map[store.Millis]*ending
	alarms Alarms // of the milliseconds in ends
	Added  int64  // holds so far

	expected map[string]*Hold // by task: see Expect
}

// ending are the holds that run out in one millisecond. Some of them have ended or
// moved on: then their own ending is another one.
type ending struct {
	ms    store.Millis
	holds []*Hold
	live  int
}

// NewHoldTable returns no holds. The queue tells the shard when to take.
func NewHoldTable(a Alarms) HoldTable {
	return HoldTable{ByID: make(map[string]*Hold), ends: make(map[store.Millis]*ending), alarms: a}
}

// Len is the number of holds.
func (hs *HoldTable) Len() int { return len(hs.ByID) }

// Get returns the hold of a task under a token, nil when it has none or another one.
func (hs *HoldTable) Get(id string, token store.Token) *Hold {
	if h := hs.ByID[id]; h != nil && h.Token == token {
		return h
	}
	return nil
}

// Expect adds a hold that may have been granted. While another one of its task is known,
// either may be over: it is added once that one is removed.
func (hs *HoldTable) Expect(h *Hold) {
	if hs.ByID[h.ID] == nil {
		hs.Add(h)
		return
	}
	if hs.expected == nil {
		hs.expected = make(map[string]*Hold)
	}
	hs.expected[h.ID] = h
}

// Add records a hold. It returns the one that its task had before, which is over; nil when
// there was none.
func (hs *HoldTable) Add(h *Hold) (old *Hold) {
	delete(hs.expected, h.ID)
	if old = hs.ByID[h.ID]; old != nil {
		hs.leave(old)
	}
	hs.Added++
	h.Nth = hs.Added
	hs.ByID[h.ID] = h
	hs.arm(h)
	return old
}

// Remove forgets a hold.
func (hs *HoldTable) Remove(h *Hold) {
	delete(hs.ByID, h.ID)
	hs.leave(h)
	if next := hs.expected[h.ID]; next != nil {
		hs.Add(next)
	}
}

// Move gives a hold another deadline.
func (hs *HoldTable) Move(h *Hold, deadline store.Millis) {
	if h.Ending != nil && h.Deadline == deadline {
		return
	}
	hs.leave(h)
	h.Deadline = deadline
	hs.arm(h)
}

// Take returns the holds that run out in a millisecond. They stay, without a timer.
func (hs *HoldTable) Take(ms store.Millis) []*Hold {
	hs.alarms.Take(ms)
	e := hs.ends[ms]
	if e == nil {
		return nil
	}
	delete(hs.ends, ms)
	e.compact()
	for _, h := range e.holds {
		h.Ending = nil
	}
	return e.holds
}

// Rearm has the queue tell of a millisecond once more.
func (hs *HoldTable) Rearm(ms store.Millis) {
	for _, at := range hs.alarms.Take(ms) {
		hs.alarms.Set(at)
	}
}

// Close forgets everything.
func (hs *HoldTable) Close() {
	hs.alarms.Close()
	clear(hs.ByID)
	clear(hs.ends)
	clear(hs.expected)
}

// arm sees to it that the wheel tells of the hold's end.
func (hs *HoldTable) arm(h *Hold) {
	e := hs.ends[h.Deadline]
	if e == nil {
		e = &ending{ms: h.Deadline}
		hs.ends[e.ms] = e
		hs.alarms.Set(e.ms)
	}
	h.Ending = e
	e.holds = append(e.holds, h)
	e.live++
}

func (hs *HoldTable) leave(h *Hold) {
	e := h.Ending
	if e == nil {
		return
	}
	h.Ending = nil
	e.live--
	switch {
	case e.live == 0:
		delete(hs.ends, e.ms)
		hs.alarms.Clear(e.ms)
	case len(e.holds) > 4*e.live: // so that a slow task does not keep the others of its batch
		e.compact()
	}
}

func (e *ending) compact() {
	e.holds = slices.DeleteFunc(e.holds, func(h *Hold) bool { return h.Ending != e })
}

// Hold is a held task as the shard remembers it.
type Hold struct {
	ID       string
	Sub      Holder // nil: held by an earlier life of the shard
	Token    store.Token
	Deadline store.Millis
	Retries  Retries
	Lasts    time.Duration // of the hold when it was granted: what an extend renews
	Foreign  bool          // taken by another node: retries is not known
	Ending   *ending       // nil: no timer. Set by held
	Nth      int64         // that the shard learned of. Set by held
}

// Holder is a subscription that has holds. Its number is unique in the process.
type Holder interface{ HolderID() int64 }
