package tenants

import (
	"cmp"
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Quotas bound what a namespace has and does, over all nodes. 0 is no bound.
type Quotas struct {
	EnqueuePerSecond float64
	EnqueueBurst     int64 // 0: as many as in a second
	BytesPerSecond   int64 // of payloads
	MaxPending       int64 // tasks
	MaxPayloadBytes  int64 // of one task
	MaxTopics        int64
	MaxSchedules     int64
	MaxStreams       int64 // of workers
	MaxInFlight      int64 // tasks that workers hold
}

// rate is that of tasks that are enqueued.
func (q *Quotas) rate() store.Rate {
	r := store.Rate{Kind: store.TokenBucket, Count: int(math.Round(q.EnqueuePerSecond)), Period: time.Second}
	if q.EnqueuePerSecond != math.Trunc(q.EnqueuePerSecond) {
		r.Count, r.Period = max(1, int(math.Round(q.EnqueuePerSecond*time.Hour.Seconds()))), time.Hour
	}
	r.Burst = int(min(store.MaxBurst, max(1, cmp.Or(q.EnqueueBurst, int64(math.Ceil(q.EnqueuePerSecond))))))
	return r
}
