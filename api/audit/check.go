package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
)

// checkFor is how long a caller waits for a check.
const checkFor = time.Second

// rest is how long a log is not checked again, in times of what a check took.
const rest = 9

// errShort is of a log without what was written last.
var errShort = fmt.Errorf("%w: its end is not what was written last", ErrBroken)

// errMoved is of a log that is not at its place.
var errMoved = fmt.Errorf("%w: the file was moved away or replaced while the server writes to it", ErrBroken)

// checks are the checks of a chain, one at a time.
type checks struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	last *check // nil: there was none; guarded by mu
}

// check is one of them. What it found is there once it is done.
type check struct {
	done  chan struct{}
	chain fleet.AuditChain
	took  time.Duration
}

func newChecks() checks {
	ctx, cancel := context.WithCancel(context.Background())
	return checks{ctx: ctx, cancel: cancel}
}

func (c *checks) end() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.wg.Wait()
}

// Check says whether the log is as it was written, to its end, and still at its place. It reads all of
// it; when that takes long, reading goes on, and a later call says what came of it. Checks take a tenth
// of the time at the most: what the last one found counts until then. The log may be nil.
func (l *Log) Check(ctx context.Context) fleet.AuditChain {
	if l == nil {
		return fleet.AuditChain{State: fleet.AuditNone}
	}
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	c := l.check()
	select {
	case <-c.done:
		return c.chain
	case <-ctx.Done():
		return fleet.AuditChain{State: fleet.AuditChecking}
	}
}

// check returns the check that runs or counts, or begins one.
func (l *Log) check() *check {
	l.checks.mu.Lock()
	defer l.checks.mu.Unlock()
	if c := l.checks.last; c != nil {
		select {
		case <-c.done:
			if l.now().Sub(c.chain.Checked) < rest*c.took {
				return c
			}
		default:
			return c
		}
	}
	c := &check{done: make(chan struct{})}
	if l.checks.ctx.Err() != nil { // it is closed
		c.chain = chainOf(Head{}, l.checks.ctx.Err())
		close(c.done)
		return c
	}
	l.checks.last = c
	l.checks.wg.Go(func() {
		defer close(c.done)
		begun := l.now()
		c.chain = chainOf(l.verify(l.checks.ctx))
		c.chain.Checked = l.now().UTC()
		c.took = c.chain.Checked.Sub(begun)
	})
	return c
}

func chainOf(head Head, err error) fleet.AuditChain {
	switch {
	case errors.Is(err, ErrBroken):
		return fleet.AuditChain{State: fleet.AuditBroken, Fault: err.Error()}
	case err != nil:
		return fleet.AuditChain{State: fleet.AuditUnknown, Fault: err.Error()}
	}
	return fleet.AuditChain{State: fleet.AuditWhole, Records: head.Records, Head: head.Hash}
}

// verify reads what was written, and holds its end against what is known of it.
func (l *Log) verify(ctx context.Context) (Head, error) {
	l.mu.Lock()
	size, written := l.size, l.head
	l.mu.Unlock()
	head, err := Verify(bufio.NewReaderSize(&ending{ctx, io.NewSectionReader(l.file, 0, size)}, readBlock))
	if err != nil {
		return head, err
	}
	if head != written {
		return head, errShort
	}
	return head, l.atPlace()
}

// atPlace says that there is another file at the path of the log, or none.
func (l *Log) atPlace() error {
	there, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return err
	}
	own, err := l.file.Stat()
	if err == nil && !os.SameFile(own, there) {
		return errMoved
	}
	return err
}

// ending is a reader that ends with a context.
type ending struct {
	ctx context.Context //nolint:containedctx // readers get none
	io.Reader
}

func (e *ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.Reader.Read(p)
}
