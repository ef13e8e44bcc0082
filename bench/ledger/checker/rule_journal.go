package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// ranAgain looks for what a handler did under a name after the server had said that it
// remembers it. An attempt before that, which is late, does not know.
func ranAgain(t *task) {
	for _, o := range t.checkpoints {
		if !o.did() || o.settled == nil || o.settled.loose {
			continue
		}
		for _, e := range t.ran {
			if e.Name == o.Name && e.Mono > o.to && e.Attempt >= o.settled.Attempt {
				t.offend(verdict.Forgotten, "%q ran in attempt %d after its checkpoint was answered", e.Name, e.Attempt)
				return
			}
		}
	}
}

// lateCheckpoints looks for checkpoints that were accepted after the hold was over.
func lateCheckpoints(t *task) {
	for _, o := range t.checkpoints {
		d := o.settled
		if o.result != ledger.OK || d == nil || d.loose {
			continue
		}
		for _, later := range t.deliveries {
			if !later.loose && later.Attempt > d.Attempt && later.Mono < o.Mono {
				t.offend(verdict.Stale, "a checkpoint of attempt %d was accepted after attempt %d had come", d.Attempt, later.Attempt)
				return
			}
		}
		for _, end := range d.settles {
			if end.Op != ledger.Extend && end.did() && end.to < o.Mono {
				t.offend(verdict.Stale, "a checkpoint of attempt %d was accepted after its %s", d.Attempt, end.Op)
				return
			}
		}
	}
}
