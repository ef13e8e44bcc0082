package shard

import (
	"testing"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// What is left waiting in a shard that is lost keeps credit, and its node from stopping.
func TestAssignmentsToALostShardAreGivenBack(t *testing.T) {
	b := &shardState{report: newTopicReport(0, func(any) {})}
	h := &holder{shardState: b, claim: &claimer{}}
	h.hold(&HoldTasks{Sub: &subscription.Subscriber{ID: 7}, Tasks: []store.Entry{{ID: "a"}, {ID: "b"}}})
	if got := b.report.refunds[7]; got != 2 || !h.idle() {
		t.Errorf("refunded %d assignments of 2, idle %v", got, h.idle())
	}
}
