package shard

import (
	"testing"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

func TestPermitInThePlaceOfAnotherIsFreed(t *testing.T) {
	first, second := &dispatch.Permit{Holder: store.NewToken()}, &dispatch.Permit{Holder: store.NewToken()}
	b := &shardState{report: newTopicReport(0, func(any) {})}
	holds := &holdRegistry{shardState: b}
	holds.permitted("a", first)
	holds.permitted("a", second)
	if ended := b.report.permits; len(ended) != 1 || ended[0] != first {
		t.Errorf("%d permits are to be freed, want the first", len(ended))
	}
	holds.permitted("a", second)
	if len(b.report.permits) != 1 {
		t.Error("the permit of a hold that lives is to be freed")
	}
}
