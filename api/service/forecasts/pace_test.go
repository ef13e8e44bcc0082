package forecasts

import (
	"testing"
	"testing/synctest"
	"time"
)

// What nobody waits for is there for the few that come one by one, and takes a tenth of the time
// of those that never end.
func TestPaceLeavesOutOnlyWhatComesInMasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		look := func(d time.Duration) bool {
			done, ok := p.try()
			if !ok {
				return false
			}
			if _, second := p.try(); second {
				t.Error("two at a time")
			}
			time.Sleep(d)
			done()
			return true
		}
		for i := range 10 {
			if !look(100 * time.Millisecond) {
				t.Fatalf("the look %d of a few was left out", i)
			}
		}
		began, looks := time.Now(), 0
		for time.Since(began) < 100*time.Second {
			if look(100 * time.Millisecond) {
				looks++
			} else {
				time.Sleep(time.Millisecond)
			}
		}
		if looks < 95 || looks > 115 {
			t.Errorf("%d looks of 100ms in 100s, want about a hundred", looks)
		}
	})
}
