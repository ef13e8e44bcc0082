package ledger

import (
	"slices"
	"strings"
)

func byShard(changes []*Event) map[int][]*Event {
	shards := map[int][]*Event{}
	for _, e := range changes {
		shards[e.Change.Shard] = append(shards[e.Change.Shard], e)
	}
	return shards
}

func tagged(log []*Event, tag string) []*Event {
	if tag == "" {
		return log
	}
	return slices.DeleteFunc(slices.Clone(log), func(e *Event) bool { return e.Change.Tag != tag })
}

// upToMarker cuts off what came after the watchers were told to end.
func upToMarker(log []*Event) []*Event {
	for i := len(log) - 1; i >= 0; i-- {
		if strings.HasPrefix(log[i].Task, Marker) {
			return log[:i+1]
		}
	}
	return nil
}
