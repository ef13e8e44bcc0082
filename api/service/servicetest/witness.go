package servicetest

import (
	"github.com/ddq-io/ddq/actors/subscription"
)

func namesOf(got []subscription.Delivery) (names []string) {
	for _, d := range got {
		names = append(names, string(d.Task.Payload))
	}
	return names
}

// witness checks from the workers' side what order promises.
type witness struct {
	*crew
	holding map[string]subscription.Delivery // by key
	Began   map[string]bool                  // tasks that were delivered
	last    map[string]int                   // by key: the number of the last one that began
	turn    int
}
