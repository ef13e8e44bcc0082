package peer

import (
	"testing"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// TestDeliveriesKeepTheirKeys: a worker sees the same of a task whichever node it comes
// from.
func TestDeliveriesKeepTheirKeys(t *testing.T) {
	from := &ddqv1.Task{
		Id: "a", IdempotencyKey: "order 7", FairnessKey: "tenant", RateKey: "customer", ConcurrencyKey: "account",
		Priority: 3, FairnessWeight: 2, Version: 4, RetryCount: 1,
	}
	got := deliveriesOf("mail", []*ddqv1.Delivery{{Task: from}, {Task: &ddqv1.Task{Id: "b"}}})
	task := got[0].Task
	if task.Key == nil || task.Key.Text != "order 7" {
		t.Errorf("idempotency key is %v", task.Key)
	}
	if r := task.Traits; r == nil || r.FairnessKey != "tenant" || r.RateKey != "customer" || r.ConcurrencyKey != "account" || r.Priority != 3 || r.FairnessWeight != 2 {
		t.Errorf("traits are %+v", r)
	}
	if task.Version() != 4 || task.Attempt != 2 {
		t.Errorf("version %d and attempt %d, want 4 and 2", task.Version(), task.Attempt)
	}
	if plain := got[1].Task; plain.Key != nil || plain.Traits != nil {
		t.Errorf("a task without keys has %v and %v", plain.Key, plain.Traits)
	}
}
