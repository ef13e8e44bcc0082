package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// TestEveryPolicyIsPlanned: each policy is met by some task of a short round, and the
// same ones under the same seed.
func TestEveryPolicyIsPlanned(t *testing.T) {
	c := Config{Name: "p0", Seed: 3, Rate: 75, For: 6 * time.Second, Mix: UsualMix()}
	tasks := Tasks(&c)
	met := map[string]int{}
	for i := range tasks {
		p := &tasks[i]
		met[p.Topic]++
		if p.Slack > 0 {
			met["slack"]++
		}
		if p.Topic != Plain && p.Key != "" {
			met["key"]++
		}
		for _, e := range p.Edits {
			met[string(e.Op)]++
			if e.Conditional {
				met["conditional"]++
			}
		}
		for _, e := range p.Ends {
			if e.Cancel {
				met["cancel"]++
				if !Cancelled(c.Seed, p.ID) {
					t.Errorf("%s is cancelled, and its handler does not know", p.ID)
				}
			} else {
				met["wait"]++
			}
		}
	}
	for _, b := range Bulks(tasks) {
		met["bulk"]++
		if len(b.IDs) != bulkTasks || b.Op == ledger.Delete && b.Moved != 0 {
			t.Errorf("bulk %+v", b)
		}
	}
	for _, k := range Keys(&c) {
		met[k.Conflict.String()]++
	}
	for _, what := range []string{
		Plain, Capped, Rated, Kept, "slack", "key", string(ledger.Update), string(ledger.Promote), string(ledger.Reschedule), "conditional",
		"cancel", "wait", "bulk", client.ConflictReturn.String(), client.ConflictReject.String(), client.ConflictReplace.String(),
	} {
		if met[what] == 0 {
			t.Errorf("no task is about %q", what)
		}
	}
	if again := Tasks(&c); !reflect.DeepEqual(tasks, again) {
		t.Error("the same seed makes another plan")
	}
	if !reflect.DeepEqual(Keys(&c), Keys(&c)) {
		t.Error("the same seed makes other keys")
	}
}

// TestProducersShareKeys: an idempotency key is one that several enqueue.
func TestProducersShareKeys(t *testing.T) {
	keys := func(name string) map[string]client.OnConflict {
		out := map[string]client.OnConflict{}
		for _, k := range Keys(&Config{Name: name, Seed: 3, Rate: 75, For: 6 * time.Second, Mix: UsualMix()}) {
			out[k.Key] = k.Conflict
		}
		return out
	}
	first, second := keys("p0"), keys("p1")
	if len(first) < 5 || !reflect.DeepEqual(first, second) {
		t.Errorf("%v and %v", first, second)
	}
}

func TestSameSeedSamePlan(t *testing.T) {
	c := Config{Name: "p0", Seed: 7, Rate: 200, For: 5e9, Mix: UsualMix(), Herd: 10, HerdAt: 6e9}
	first, second := Tasks(&c), Tasks(&c)
	c.Seed = 8
	other := Tasks(&c)
	fates := map[Fate]bool{}
	same := 0
	for i := range first {
		a, b := first[i], second[i]
		if a.ID != b.ID || a.Due != b.Due || a.Fate != b.Fate || tap.Sum(a.Payload) != tap.Sum(b.Payload) {
			t.Fatalf("task %d differs: %+v and %+v", i, a, b)
		}
		if a.Due == other[i].Due {
			same++
		}
		fates[a.Fate] = true
		if i > 0 && a.Send < first[i-1].Send {
			t.Fatalf("task %d is sent before the one before it", i)
		}
	}
	if same > len(first)/2 {
		t.Errorf("another seed makes the same plan")
	}
	if len(first) != 1010 || len(fates) < int(Twice) {
		t.Errorf("%d tasks with %d fates", len(first), len(fates))
	}
}
