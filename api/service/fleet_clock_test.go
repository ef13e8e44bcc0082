package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service/servicetest"
)

// The clocks of three nodes and of the store are up to fifteen seconds apart: tasks
// are due by the store's, whichever node takes them, owns them or delivers them,
// and leases and holds last as long as they should.
func TestClocksThatDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{0, 5 * time.Second, -5 * time.Second} {
		t.Run(fmt.Sprint("store ahead by ", ahead), func(t *testing.T) {
			servicetest.FleetBubble(t, nil, func(t *testing.T, f *servicetest.Fleet) {
				f.Store.SetClock(ahead)
				f.Off = map[string]time.Duration{"a": 5 * time.Second, "b": -5 * time.Second, "c": 0}
				for name := range f.Off {
					f.Join(name)
				}
				w := f.Work(f.Nodes["a"], "mail", 5000)
				w.Skew = ahead
				owners := map[string]bool{}
				for _, owner := range f.Owners("mail") {
					owners[owner] = true
				}
				if len(owners) != 3 {
					t.Errorf("owners are %v", owners)
				}
				for name, at := range f.Nodes {
					w.Enqueue(at, "mail", "delay-"+name, 200, 2*time.Second)
					w.EnqueueAt(at, "due-"+name, 200, time.Now().Add(ahead), 2*time.Second)
				}
				w.Run(2 * time.Second)
				w.Done(5 * time.Millisecond)

				for name, at := range f.Nodes { // again, while an owner dies
					w.Enqueue(at, "mail", "again-"+name, 200, 2*time.Second)
				}
				w.Run(500 * time.Millisecond)
				f.Kill(f.Nodes["b"])
				w.Run(4 * time.Second)
				w.Done(3 * time.Second)
			})
		})
	}
}
