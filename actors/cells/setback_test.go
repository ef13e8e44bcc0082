package cells

import (
	"context"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// contendedCells are cells of which others change those of audiences all the time.
type contendedCells struct{ cellStoreOf }

func (c contendedCells) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if f != nil {
		return c.cellStoreOf.Commit(ctx, s, f, commits)
	}
	return store.Stamp{}, []store.CommitResult{{Status: store.Stale}}, nil
}

// What cannot go on for a moment, while the store's clock is an hour ahead, goes on once that is put right.
func TestWhatIsTriedAgainInATimeToComeIsLookedAt(t *testing.T) {
	walk := walkRun{recipients: 20, shards: 2, window: 10 * time.Second, grain: time.Second}
	for name, c := range map[string]struct {
		begin, hold, free func(r *lookRig)
		runs              int
	}{
		"a walk whose audience others change": {
			func(r *lookRig) { walk.fill(r); walk.order(r) },
			func(r *lookRig) { r.Looker.Store = contendedCells{r.db} },
			func(r *lookRig) { r.Looker.Store = r.db },
			20,
		},
		"a schedule whose topic takes nothing": {
			func(r *lookRig) {
				r.putWith("s", func(s *schedule.Spec) { s.Grace = 2 * time.Hour })
				time.Sleep(time.Minute)
			},
			func(r *lookRig) { r.topic.EnqueuePaused = true },
			func(r *lookRig) { r.topic.EnqueuePaused = false },
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *lookRig) {
				ahead := time.Duration(0)
				now := r.Looker.Now
				r.Looker.Now = func() store.Millis { return now().Add(ahead) }
				set := func(by time.Duration) {
					ahead = by
					r.db.SetClock(by)
				}
				c.begin(r)
				c.hold(r)
				r.mustLook()
				set(time.Hour)
				for range 3 {
					time.Sleep(time.Second)
					if made := runs(r.mustLook()); len(made) > 0 {
						t.Fatalf("made %v where nothing goes on", made)
					}
				}
				c.free(r)
				set(0)
				made := 0
				for range 10 {
					made += len(runs(r.mustLook()))
				}
				if made != c.runs {
					t.Errorf("once the clock is right %d runs are made, want %d", made, c.runs)
				}
				if at := r.progress.checkAt; at > r.Now().Add(passEvery) {
					t.Errorf("workflows are looked through in %v", at.Sub(r.Now()))
				}
			})
		})
	}
}
