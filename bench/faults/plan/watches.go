package plan

import (
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// Watched is how long topics keep what happens: longer than any clock is set ahead.
const Watched = 48 * time.Hour

// Watches are what the watchers of a round follow: one topic, and half of another. A herd
// is not watched, as what it takes is to be seen without that.
func Watches(herd int) []client.WatchOptions {
	all := []client.WatchOptions{{Topic: Kept, FromOldest: true, Attributes: map[string]string{TagAttribute: WatchedHalf}}}
	if herd == 0 {
		all = append(all, client.WatchOptions{Topic: Plain, FromOldest: true})
	}
	return all
}

// Markers is how many tasks tell a watcher that it has seen everything: enough for all
// shards of a topic.
const Markers = 64
