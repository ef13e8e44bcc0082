package audit

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const (
	// mostRead is how many bytes of a log are looked at for one page.
	mostRead = 8 << 20
	// readBlock is how many are read at a time.
	readBlock = 64 << 10
	// longestLine bounds what is taken for one; what is longer was not written here, and is one in parts.
	longestLine = 256 << 10
	// mostShown is what is handed out of a line that is none.
	mostShown = 1 << 10
)

// Decode returns the record of a line, and what it tells of a call.
func Decode(line []byte) (r Record, o fleet.AuditOutcome, err error) {
	r, _, err = decode(line)
	return r, r.outcome(), err
}

// Read returns lines that a filter matches, the newest first. It looks at a bounded part of the log. A
// line that is not as it was written is always among them. The log may be nil.
func (l *Log) Read(q fleet.AuditQuery) (p fleet.AuditPage, err error) {
	if l == nil {
		return fleet.AuditPage{None: true}, nil
	}
	end, err := l.end()
	if err != nil {
		return p, err
	}
	if q.Until > 0 {
		if end, err = l.from(q.Until, end); err != nil {
			return p, err
		}
	}
	p.End, p.Next, p.Reached = end, end, l.now().UTC()
	return p, l.page(&q, &p)
}

// end is where the log ends: of a file that was cut off, before what was written.
func (l *Log) end() (int64, error) {
	l.mu.Lock()
	size := l.size
	l.mu.Unlock()
	info, err := l.file.Stat()
	if err != nil {
		return 0, err
	}
	return min(size, info.Size()), nil
}

// from checks that a line ends where reading is to begin. In another file than before none may.
func (l *Log) from(until, end int64) (int64, error) {
	var last [1]byte
	if until <= end {
		if _, err := l.file.ReadAt(last[:], until-1); err != nil {
			return 0, err
		}
	}
	if last[0] != '\n' {
		return 0, problem.AsError(store.ErrBadCursor)
	}
	return until, nil
}

// page gathers lines up to the bounds of a query.
func (l *Log) page(q *fleet.AuditQuery, p *fleet.AuditPage) error {
	wanted, lines, bytesLeft := newFilter(&q.AuditFilter), backwards{log: l.file, from: p.End}, q.Bytes
	for p.Next > 0 && len(p.Lines) < q.Most && p.End-p.Next < mostRead {
		text, at, err := lines.next()
		if err != nil {
			return err
		}
		r, _, err := decode(text)
		found := fleet.AuditLine{Text: text, At: at, Time: r.Time, Altered: err != nil}
		switch {
		case err != nil:
			found.Time, found.Text = p.Reached, text[:min(len(text), mostShown)] // of the one after it
		case r.Time.Before(q.From):
			p.Next = 0 // and so are those before
			return nil
		}
		if found.Altered || wanted.match(&r) {
			if bytesLeft -= len(found.Text); bytesLeft < 0 && len(p.Lines) > 0 {
				return nil
			}
			found.Text = slices.Clone(found.Text)
			p.Lines = append(p.Lines, found)
		}
		p.Next, p.Reached = at, found.Time
	}
	return nil
}

// backwards are the lines of a log from its end to its beginning.
type backwards struct {
	log  io.ReaderAt
	from int64  // where text begins in the log
	text []byte // whole lines, and before them what may be the end of one
}

// next returns a line that is good until the next call, and where it begins. There must be one.
func (b *backwards) next() (line []byte, at int64, err error) {
	for {
		i := bytes.LastIndexByte(b.text[:max(len(b.text)-1, 0)], '\n') + 1
		if i > 0 || len(b.text) > 0 && (b.from == 0 || len(b.text) >= longestLine) {
			line, b.text = b.text[i:], b.text[:i]
			return line, b.from + int64(i), nil
		}
		if err := b.grow(); err != nil {
			return nil, 0, err
		}
	}
}

// grow reads a block before those that were read.
func (b *backwards) grow() error {
	n := min(readBlock, b.from)
	text := make([]byte, n, int(n)+len(b.text))
	if read, err := b.log.ReadAt(text, b.from-n); read < len(text) {
		return errors.Join(err, io.ErrUnexpectedEOF)
	}
	b.text, b.from = append(text, b.text...), b.from-n
	return nil
}
