package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Log appends records to a file, and reads them. It owns a goroutine while its chain is checked, which
// is gone once Close returns. It is safe for concurrent use.
type Log struct {
	path string
	node string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	file    *os.File // written to with mu held
	head    Head     // guarded by mu
	size    int64    // of what was written; guarded by mu
	failed  error    // why nothing is written any more; guarded by mu
	refused refusals // guarded by mu

	checks checks
}

// Open goes on with the log at a path, which it makes when it is not there, and which nobody else
// may read. It refuses a file whose chain is broken. A last line that is not whole, as after a
// power cut, is taken out, and a record says so.
func Open(path, node string, log *slog.Logger) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator chose the name
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, node: node, log: log, now: time.Now, file: file, refused: make(refusals), checks: newChecks()}
	if err := l.resume(path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	log.Info("audit log", "file", path, "records", l.head.Records, "head", l.head.Hash)
	return l, nil
}

func (l *Log) resume(path string) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read or write %s (mode %v): chmod 600 it", path, info.Mode().Perm())
	}
	head, whole, err := walk(l.file)
	if err != nil {
		return fmt.Errorf("%s: %w; move it away, and the server begins another one", path, err)
	}
	l.head, l.size = head, info.Size()
	if !whole {
		if err := l.cut(info.Size()); err != nil {
			return err
		}
		if _, err := l.append(&Record{Event: Cut}); err != nil {
			return err
		}
	}
	_, err = l.append(&Record{Event: Started})
	return err
}

// cut takes out a last line that is not whole. Lines have no bound, but such a one is as long as
// what one write had at the most.
func (l *Log) cut(size int64) error {
	tail := make([]byte, min(size, 4*maxRequest))
	if _, err := l.file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	end := tornAt(tail, size)
	if err := l.file.Truncate(end); err != nil {
		return err
	}
	l.size = end
	_, err := l.file.Seek(end, io.SeekStart)
	return err
}

// append writes a record and syncs it. What cannot be written ends the log: a gap must not be
// covered by what comes later.
func (l *Log) append(r *Record) (seq int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return 0, l.failed
	}
	r.Seq, r.Time, r.Node, r.Prev = l.head.Records+1, l.now().UTC(), l.node, l.head.Hash
	line, sum, err := encode(r)
	if err != nil {
		return 0, err
	}
	if _, err = l.file.Write(line); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.failed = fmt.Errorf("the audit log cannot be written: %w", err)
		l.log.Error("the audit log cannot be written; what is audited is refused until the server is started again", "err", err)
		return 0, l.failed
	}
	l.head, l.size = Head{Records: r.Seq, Hash: string(sum)}, l.size+int64(len(line))
	return r.Seq, nil
}

// Asked writes down that a call is about to be done. Where it fails the call must not be done.
func (l *Log) Asked(ctx context.Context, c *Call) (seq int64, err error) {
	return l.append(c.record(ctx, Asked))
}

// Answered writes down what came of a call.
func (l *Log) Answered(ctx context.Context, asked int64, c *Call, code string) error {
	r := c.record(ctx, Answered)
	r.Call, r.Code, r.Request = asked, code, nil
	_, err := l.append(r)
	return err
}

// Refused writes down that a caller may not: the first call of a kind in a minute, and then how
// many there were. It does not fail: a refusal is one, whether it is written down or not.
func (l *Log) Refused(ctx context.Context, c *Call, code string) {
	r := c.record(ctx, Refused)
	r.Code, r.Request, r.Topic, r.Name = code, nil, "", "" // it stands for others of the kind
	l.mu.Lock()
	before, say := l.refused.count(refusal{r.Caller, r.Address, r.Method, code}, l.now())
	l.mu.Unlock()
	if say {
		r.Count = before
		_, _ = l.append(r) // it was logged
	}
}

// Close ends the log, and says where it ends. It may be nil.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.checks.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Info("audit log ends", "records", l.head.Records, "head", l.head.Hash)
	if l.failed == nil {
		l.failed = errors.New("the audit log is closed")
	}
	return l.file.Close()
}

const (
	sayAgain     = time.Minute
	manyRefusals = 4096 // kinds that are told apart
)

// refusal is a kind of refused calls.
type refusal struct{ caller, address, method, code string }

// refusals are those that were not written down since one that was.
type refusals map[refusal]*struct {
	said   time.Time
	silent int64
}

// count reports whether a refusal is written down, and how many like it were not.
func (all refusals) count(r refusal, now time.Time) (before int64, say bool) {
	seen := all[r]
	if seen != nil && now.Sub(seen.said) < sayAgain {
		seen.silent++
		return 0, false
	}
	if seen == nil {
		if len(all) >= manyRefusals {
			clear(all)
		}
		seen = new(struct {
			said   time.Time
			silent int64
		})
		all[r] = seen
	}
	before, seen.silent, seen.said = seen.silent, 0, now
	return before, true
}
