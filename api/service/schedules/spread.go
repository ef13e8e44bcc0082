package schedules

import (
	"sync"

	"github.com/ddq-io/ddq/store/place"
)

// spreadOver is how many items of a call are worked on at a time.
const spreadOver = 64

// Spread works on n items at a time, those of one key in order.
func Spread(n int, key func(int) string, work func(int)) {
	lanes := make([][]int, min(n, spreadOver))
	for i := range n {
		lane := place.HashID(key(i)) % uint64(len(lanes))
		lanes[lane] = append(lanes[lane], i)
	}
	var wg sync.WaitGroup
	for _, lane := range lanes {
		wg.Go(func() {
			for _, i := range lane {
				work(i)
			}
		})
	}
	wg.Wait()
}
