package cells

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// TestARunThatIsNotTrackedMakesAllOfItsTasks: it is over once it has made its last ones.
func TestARunThatIsNotTrackedMakesAllOfItsTasks(t *testing.T) {
	for name, window := range map[string]time.Duration{"at once": 0, "spread": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *lookRig) {
				w := walkRun{recipients: 1500, shards: 4, window: window, grain: time.Second, untracked: true}
				if w.play(r); w.tasks != w.recipients {
					t.Errorf("%d tasks for %d recipients", w.tasks, w.recipients)
				}
			})
		})
	}
}

// TestARunThatIsNotTrackedIsTakenBack cancels one half way: what it made goes, to the last task.
func TestARunThatIsNotTrackedIsTakenBack(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		w := walkRun{recipients: 300, shards: 4, window: 5 * time.Minute, grain: time.Second, untracked: true}
		w.fill(r)
		w.order(r)
		for range 3 {
			r.mustLook()
		}
		s := r.schedule("all")
		if stats, err := r.db.Counts(r.Context(), []store.Shard{r.ID}); err != nil || stats[0].Pending == 0 || len(s.Open) != 1 {
			t.Fatalf("on its way: %+v, %v", stats, err)
		}
		r.commit(store.Commit{Send: []store.Parcel{{To: audience.WalkID(s.RunID(s.Open[0])), Body: schedule.CancelWalk()}}})
		for range 10 {
			r.mustLook()
		}
		stats, err := r.db.Counts(r.Context(), []store.Shard{r.ID})
		if err != nil || stats[0].Pending != 0 || len(r.schedule("all").Open) != 0 {
			t.Errorf("after it was cancelled: %+v, %v; open are %v", stats, err, r.schedule("all").Open)
		}
	})
}
