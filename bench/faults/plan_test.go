package faults

import (
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
)

// TestEveryPolicyIsPlanned: each policy is met by some task of a short round, and the
// same ones under the same seed.
func TestEveryPolicyIsPlanned(t *testing.T) {
	c := partyConfig{Name: "p0", Seed: 3, Rate: 75, For: 6 * time.Second, Mix: usualMix()}
	tasks := makePlan(&c)
	met := map[string]int{}
	for i := range tasks {
		p := &tasks[i]
		met[p.topic]++
		if p.slack > 0 {
			met["slack"]++
		}
		if p.topic != plain && p.key != "" {
			met["key"]++
		}
		for _, e := range p.edits {
			met[string(e.op)]++
			if e.conditional {
				met["conditional"]++
			}
		}
		for _, e := range p.ends {
			if e.cancel {
				met["cancel"]++
				if !cancelled(c.Seed, p.id) {
					t.Errorf("%s is cancelled, and its handler does not know", p.id)
				}
			} else {
				met["wait"]++
			}
		}
	}
	for _, b := range bulksOf(tasks) {
		met["bulk"]++
		if len(b.ids) != bulkTasks || b.op == ledger.Delete && b.moved != 0 {
			t.Errorf("bulk %+v", b)
		}
	}
	for _, k := range planKeys(&c) {
		met[k.conflict.String()]++
	}
	for _, what := range []string{
		plain, capped, rated, kept, "slack", "key", string(ledger.Update), string(ledger.Promote), string(ledger.Reschedule), "conditional",
		"cancel", "wait", "bulk", client.ConflictReturn.String(), client.ConflictReject.String(), client.ConflictReplace.String(),
	} {
		if met[what] == 0 {
			t.Errorf("no task is about %q", what)
		}
	}
	if again := makePlan(&c); !reflect.DeepEqual(tasks, again) {
		t.Error("the same seed makes another plan")
	}
	if !reflect.DeepEqual(planKeys(&c), planKeys(&c)) {
		t.Error("the same seed makes other keys")
	}
}

// TestProducersShareKeys: an idempotency key is one that several enqueue.
func TestProducersShareKeys(t *testing.T) {
	keys := func(name string) map[string]client.OnConflict {
		out := map[string]client.OnConflict{}
		for _, k := range planKeys(&partyConfig{Name: name, Seed: 3, Rate: 75, For: 6 * time.Second, Mix: usualMix()}) {
			out[k.key] = k.conflict
		}
		return out
	}
	first, second := keys("p0"), keys("p1")
	if len(first) < 5 || !reflect.DeepEqual(first, second) {
		t.Errorf("%v and %v", first, second)
	}
}
