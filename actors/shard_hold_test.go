package actors

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

// What is left waiting in a shard that is lost keeps credit, and its node from stopping.
func TestAssignmentsToALostShardAreGivenBack(t *testing.T) {
	s := &shard{refunds: map[int64]int{}, counting: map[int64]int{}, assigned: map[int64]int{}}
	s.hold(&holdTasks{sub: &subscriber{id: 7}, tasks: []store.Entry{{ID: "a"}, {ID: "b"}}})
	if got := s.refunds[7]; got != 2 || !s.idle() {
		t.Errorf("refunded %d assignments of 2, idle %v", got, s.idle())
	}
}
