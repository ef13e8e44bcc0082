package schedules

import "github.com/ddq-io/ddq/store/gather"

// Spread works on the n items of a request, many at a time, those of one key in order. What
// they read and commit of one shard goes to the store together.
func Spread(s *Schedules, n int, key func(int) string, work func(*Schedules, int)) {
	together := *s
	if s.cells != nil {
		together.cells = gather.New(s.cells)
	}
	gather.Spread(n, key, func(i int) { work(&together, i) })
}
