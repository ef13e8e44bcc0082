package checker

import "github.com/ddq-io/ddq/bench/ledger/verdict"

func phantom(t *task) {
	if len(t.deliveries) > 0 {
		t.offend(verdict.Phantom, "delivered, though no enqueue was accepted")
	} else if t.found != nil {
		t.offend(verdict.Phantom, "in the store, though no enqueue was accepted")
	}
}
