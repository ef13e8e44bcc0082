package schedule

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Of a crowd each run is made in time: the first early enough that the last is made before
// its occurrence, at the rate that a shard has.
func TestCrowdLead(t *testing.T) {
	const now = store.Millis(1_000_000_000)
	bounds := []store.Millis{now.Add(10 * time.Second), now.Add(time.Minute), now.Add(2 * time.Minute), now.Add(5 * time.Minute)}
	for name, c := range map[string]struct {
		counts []int64
		lead   time.Duration
		more   store.Millis
	}{
		"nobody":                           {counts: []int64{0, 0, 0, 0, 9}, lead: Lead},
		"few":                              {counts: []int64{100, 100, 100, 100, 9}, lead: Lead},
		"as many as the usual lead takes":  {counts: []int64{8000, 0, 0, 0, 0}, lead: Lead},
		"one more, seen in time":           {counts: []int64{0, 0, 0, 8001, 0}, lead: Lead, more: bounds[3].Add(Lead - time.Second - 8001*time.Second/2000)},
		"one more, and it is time":         {counts: []int64{16_000, 0, 0, 0, 0}, lead: Lead, more: bounds[0].Add(Lead - 9*time.Second)},
		"it is time for the nearest":       {counts: []int64{40_000, 0, 0, 0, 0}, lead: 10*time.Second + Lead, more: now.Add(44 * time.Second)}, // a look too many
		"a crowd far off takes minutes":    {counts: []int64{0, 0, 260_000, 0, 0}, lead: 2*time.Minute + Lead, more: now.Add(174 * time.Second)},
		"never more than five minutes":     {counts: []int64{0, 0, 0, 2_000_000, 0}, lead: MaxLead},
		"the counts behind add up":         {counts: []int64{0, 60_000, 60_000, 0, 0}, lead: Lead, more: bounds[1].Add(Lead - time.Second - 30*time.Second)},
		"what wakes behind does not count": {counts: []int64{0, 0, 0, 0, 5_000_000}, lead: Lead},
	} {
		lead, more := CrowdLead(now, bounds, c.counts)
		if lead != c.lead || more != c.more {
			t.Errorf("%s: lead %v, more at %v; want %v, %v", name, lead, time.Duration(more-now)*time.Millisecond, c.lead, time.Duration(c.more-now)*time.Millisecond)
		}
	}
}
