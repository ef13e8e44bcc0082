package gather

import (
	"sync"

	"github.com/ddq-io/ddq/store/place"
)

// atATime is how many items of a request are worked on at a time.
const atATime = 64

// Spread works on the n items of a request, many at a time, those of one key in order. It returns
// when all are done.
func Spread(n int, key func(i int) string, work func(i int)) {
	lanes := make([][]int, min(n, atATime))
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
