package checker

import (
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
)

func byShard(changes []*ledger.Event) map[int][]*ledger.Event {
	shards := map[int][]*ledger.Event{}
	for _, e := range changes {
		shards[e.Change.Shard] = append(shards[e.Change.Shard], e)
	}
	return shards
}

func tagged(log []*ledger.Event, tag string) []*ledger.Event {
	if tag == "" {
		return log
	}
	return slices.DeleteFunc(slices.Clone(log), func(e *ledger.Event) bool { return e.Change.Tag != tag })
}

// upToMarker cuts off what came after the watchers were told to end.
func upToMarker(log []*ledger.Event) []*ledger.Event {
	for i := len(log) - 1; i >= 0; i-- {
		if strings.HasPrefix(log[i].Task, ledger.Marker) {
			return log[:i+1]
		}
	}
	return nil
}
