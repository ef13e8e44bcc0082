package fleet

import "github.com/ddq-io/ddq/store"

// DueSeconds is for how many seconds from now nodes count what comes due.
const DueSeconds = 60

// DueSoon is how many tasks of a shard come due in each of the next seconds, as far as its
// owner knows of them.
type DueSoon struct {
	From   store.Millis // the first second begins
	Until  store.Millis // all that is due before is counted: the end of a second; 0: nobody counted
	Counts []int64      // by second; from Until on perhaps too few, and behind the last none
}
