package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// TestHeldKeepsWhatLives moves and ends most holds of each millisecond: those that
// are left run out when they should, and the others are not kept in memory.
func TestHeldKeepsWhatLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{Now: time.Now, Logger: discard()})
		defer w.Close()
		ran := make(chan int64, 1000)
		hs := newHeld(w.NewQueue(func(ms int64) { ran <- ms }))
		defer hs.close()
		now := store.Millis(time.Now().UnixMilli())
		var all []*hold
		for i := range 10_000 {
			h := &hold{id: fmt.Sprint(i), token: store.NewToken(), deadline: now.Add(time.Second + time.Duration(i%10)*time.Millisecond)}
			hs.add(h)
			all = append(all, h)
		}
		for i, h := range all {
			switch {
			case i%100 == 0: // stays
			case i%100 == 1:
				hs.move(h, now.Add(2*time.Second))
			default:
				hs.remove(h)
			}
		}
		for _, e := range hs.ends {
			if len(e.holds) > 4*e.live {
				t.Errorf("the end at %d keeps %d holds for %d", e.ms-now, len(e.holds), e.live)
			}
		}
		if hs.len() != 200 || hs.get("0", all[0].token) != all[0] || hs.get("0", all[1].token) != nil || hs.get("2", all[2].token) != nil {
			t.Errorf("%d holds are left of 200", hs.len())
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		got := map[string]time.Duration{}
		for range len(ran) {
			ms := <-ran
			for _, h := range hs.take(store.Millis(ms)) {
				got[h.id] = store.Millis(ms).Sub(now)
			}
		}
		for i, h := range all {
			want := map[int]time.Duration{0: h.deadline.Sub(now), 1: 2 * time.Second}[i%100]
			if got[h.id] != want {
				t.Errorf("hold %d ran out after %v, want %v", i, got[h.id], want)
			}
		}
		hs.move(all[0], all[0].deadline) // arms it again
		if all[0].ending == nil || len(hs.ends) != 1 {
			t.Errorf("a hold without a timer got none")
		}
	})
}
