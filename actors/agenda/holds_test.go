package agenda

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// setAlarms are alarms that somebody looks at.
type setAlarms map[store.Millis]bool

func (a setAlarms) Set(ms store.Millis)   { a[ms] = true }
func (a setAlarms) Clear(ms store.Millis) { delete(a, ms) }
func (a setAlarms) Close()                { clear(a) }

func (a setAlarms) Take(ms store.Millis) []store.Millis {
	if !a[ms] {
		return nil
	}
	delete(a, ms)
	return []store.Millis{ms}
}

// TestHeldKeepsWhatLives moves and ends most holds of each millisecond: those that
// are left run out when they should, and the others are not kept in memory.
func TestHeldKeepsWhatLives(t *testing.T) {
	alarms := setAlarms{}
	hs := NewHoldTable(alarms)
	defer hs.Close()
	const now = store.Millis(1_900_000_000_000)
	var all []*Hold
	for i := range 10_000 {
		h := &Hold{ID: fmt.Sprint(i), Token: store.NewToken(), Deadline: now.Add(time.Second + time.Duration(i%10)*time.Millisecond)}
		hs.Add(h)
		all = append(all, h)
	}
	for i, h := range all {
		switch {
		case i%100 == 0: // stays
		case i%100 == 1:
			hs.Move(h, now.Add(2*time.Second))
		default:
			hs.Remove(h)
		}
	}
	for _, e := range hs.ends {
		if len(e.holds) > 4*e.live {
			t.Errorf("the end at %d keeps %d holds for %d", e.ms-now, len(e.holds), e.live)
		}
	}
	if hs.Len() != 200 || hs.Get("0", all[0].Token) != all[0] || hs.Get("0", all[1].Token) != nil || hs.Get("2", all[2].Token) != nil {
		t.Errorf("%d holds are left of 200", hs.Len())
	}
	got := map[string]time.Duration{}
	for ms := now; ms < now.Add(3*time.Second); ms++ {
		if !alarms[ms] {
			continue
		}
		for _, h := range hs.Take(ms) {
			got[h.ID] = ms.Sub(now)
		}
	}
	for i, h := range all {
		want := map[int]time.Duration{0: h.Deadline.Sub(now), 1: 2 * time.Second}[i%100]
		if got[h.ID] != want {
			t.Errorf("hold %d ran out after %v, want %v", i, got[h.ID], want)
		}
	}
	hs.Move(all[0], all[0].Deadline) // arms it again
	if all[0].Ending == nil || len(hs.ends) != 1 {
		t.Errorf("a hold without a timer got none")
	}
}

// TestExpectedHoldRunsOutAfterTheKnownOne has a hold that may have been granted while an earlier
// one of its task, of which an ack was never answered, was still known.
func TestExpectedHoldRunsOutAfterTheKnownOne(t *testing.T) {
	alarms := setAlarms{}
	hs := NewHoldTable(alarms)
	defer hs.Close()
	known := &Hold{ID: "a", Token: store.NewToken(), Deadline: 1000}
	expected := &Hold{ID: "a", Token: store.NewToken(), Deadline: 1500}
	hs.Add(known)
	hs.Expect(expected)
	if hs.Get("a", known.Token) != known {
		t.Error("a hold that may be over took the place of the known one")
	}
	hs.Remove(known)
	if got := hs.Take(1500); len(got) != 1 || got[0] != expected {
		t.Errorf("at its end there are %v, want the hold that was expected", got)
	}
	hs.Remove(expected)
	if hs.Len() != 0 || len(hs.expected) != 0 {
		t.Errorf("%d holds are left, and %d are expected", hs.Len(), len(hs.expected))
	}
}

// TestGrantedHoldEndsWhatWasExpected forgets what a later hold shows to be over.
func TestGrantedHoldEndsWhatWasExpected(t *testing.T) {
	hs := NewHoldTable(setAlarms{})
	defer hs.Close()
	hs.Add(&Hold{ID: "a", Token: store.NewToken(), Deadline: 1000})
	hs.Expect(&Hold{ID: "a", Token: store.NewToken(), Deadline: 1500})
	granted := &Hold{ID: "a", Token: store.NewToken(), Deadline: 2000}
	hs.Add(granted)
	hs.Remove(granted)
	if hs.Len() != 0 {
		t.Error("a hold is expected that was over")
	}
}
