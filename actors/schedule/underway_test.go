package schedule

import (
	"slices"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// TestEndsOf goes through what may be on its way for a schedule with two open runs.
func TestEndsOf(t *testing.T) {
	s := &Schedule{Name: "s", Life: 3}
	one, two := Occurrence{At: 1000, Origin: ByTimetable}, Occurrence{At: 2000, Origin: ByTimetable}
	s.Open = []Run{{Occurrence: one, Due: 1000}, {Occurrence: two, Due: 2000}}
	told := func(o Occurrence, kind store.ChangeKind) store.Parcel {
		return store.Parcel{At: 5, To: CellID("s"), Ended: &store.Ended{ID: s.ID(o), Kind: kind}}
	}
	sent := func(p store.Parcel) store.Parcel { return Forward(&p, "mail") }
	done, dead := Ended{ID: s.ID(one), Outcome: Done, At: 5}, Ended{ID: s.ID(two), Outcome: Failed, At: 5}
	for what, c := range map[string]struct {
		underWay []store.Parcel
		want     []Event
	}{
		"nothing":                      {},
		"both ends":                    {[]store.Parcel{told(two, store.ChangeDead), told(one, store.ChangeDone)}, []Event{done, dead}},
		"one that was sent on, twice":  {[]store.Parcel{sent(told(one, store.ChangeDone)), told(one, store.ChangeDone)}, []Event{done}},
		"one that is pending again":    {[]store.Parcel{told(two, store.ChangeDead), told(two, store.ChangeRequeued)}, nil},
		"one that has ended once more": {[]store.Parcel{told(two, store.ChangeDead), told(two, store.ChangeRequeued), told(two, store.ChangeDead)}, []Event{dead}},
		"one that was taken back":      {[]store.Parcel{told(one, store.ChangeDeleted)}, nil},
		"the end of another one's run": {[]store.Parcel{told(Occurrence{At: 3000, Origin: ByTimetable}, store.ChangeDone)}, nil},
		"what says nothing of any run": {[]store.Parcel{{To: CellID("s"), Body: []byte("look")}}, nil},
	} {
		if got := s.EndsOf(c.underWay); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
