package party

import (
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/ddq-io/ddq/bench/faults/plan"
)

// Config is what a producer, worker or watcher process is told, as a JSON file.
type Config struct {
	plan.Config // Name is that of the process, and of its ledger

	Role   string        // see roles
	Dir    string        // of the ledger
	Addr   string        // of the nodes
	Start  time.Time     // when the plan begins
	Hold   time.Duration // the topic's visibility timeout
	Giving time.Duration // how long one call may take

	// Of a worker.
	Concurrency int
	Work        time.Duration // the most that an ordinary handler takes

	Beside []string // of a producer: those whose plans it plays, too, with the same client

	// Of a worker of another SDK.
	SDK    string   // its language
	SDKDir string   // where they are
	HTTP   []string // addresses of the nodes

	Outbox string // of an outbox: where ddq-outbox is

	Follows string // of a watcher: the one whose cursors it goes on with
}

// OrderHang is an order to a worker, such as "hang 3s": its handlers do not return for that
// long. A party reads orders from its standard input, one a line. At the end of the input it
// finishes what it has begun and exits.
const OrderHang = "hang"

// obey carries out orders until there are no more, then calls stop.
func obey(orders io.Reader, stop func(), hang func(time.Duration)) {
	defer stop()
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		order, arg, _ := strings.Cut(lines.Text(), " ")
		if d, err := time.ParseDuration(arg); err == nil && order == OrderHang {
			hang(d)
		}
	}
}
