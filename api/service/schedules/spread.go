package schedules

import (
	"sync"

	"github.com/ddq-io/ddq/store/gather"
	"github.com/ddq-io/ddq/store/place"
)

// spreadOver is how many items of a call are worked on at a time.
const spreadOver = 64

// Spread works on the n items of a request, many at a time, those of one key in order. What
// they read and commit of one shard goes to the store together.
func Spread(s *Schedules, n int, key func(int) string, work func(*Schedules, int)) {
	together := *s
	if s.cells != nil {
		together.cells = gather.New(s.cells)
	}
	lanes := make([][]int, min(n, spreadOver))
	for i := range n {
		lane := place.HashID(key(i)) % uint64(len(lanes))
		lanes[lane] = append(lanes[lane], i)
	}
	var wg sync.WaitGroup
	for _, lane := range lanes {
		wg.Go(func() {
			for _, i := range lane {
				work(&together, i)
			}
		})
	}
	wg.Wait()
}
