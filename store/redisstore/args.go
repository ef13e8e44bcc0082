package redisstore

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// maxItems and maxBytes bound what one script is given, because Redis does
// nothing else meanwhile. Lua takes about 8,000 values in one call.
const (
	maxItems = 1000
	// mostNames is how many bytes of names of journals one script forgets.
	mostNames = 64 << 10
	maxBytes  = 8 << 20
)

// args builds the arguments of a script in one buffer, so that a batch costs
// three allocations and not three a task.
type args struct {
	buf  []byte
	ends []int // in buf, of each argument
}

func newArgs(count, size int) *args {
	return &args{buf: make([]byte, 0, size), ends: make([]int, 0, count+1)}
}

// end makes what was appended to buf since the last call an argument.
func (a *args) end()              { a.ends = append(a.ends, len(a.buf)) }
func (a *args) str(s string)      { a.buf = append(a.buf, s...); a.end() }
func (a *args) id(id string)      { a.buf = appendID(a.buf, id); a.end() }
func (a *args) int(n int64)       { a.buf = strconv.AppendInt(a.buf, n, 10); a.end() }
func (a *args) tok(t store.Token) { a.buf = append(a.buf, t[:]...); a.end() }

// trace adds the id of a trace, or nothing.
func (a *args) trace(id store.TraceID) { a.buf = append(a.buf, id.Bytes()...); a.end() }

// flag adds 1, or nothing.
func (a *args) flag(on bool) {
	if on {
		a.buf = append(a.buf, '1')
	}
	a.end()
}

func (a *args) fence(f store.Fence) {
	a.int(f.Epoch)
	a.tok(f.Nonce)
}

// moment adds that of the first script of a call, zero in that script, behind
// the mark of those that are waited for.
func (a *args) moment(t time.Time, mark string) {
	us := int64(0)
	if !t.IsZero() {
		us = t.UnixMicro()
	}
	a.buf = append(a.buf, mark...)
	a.int(us)
}

// wait adds a duration from now in milliseconds, rounded up.
func (a *args) wait(d time.Duration) { a.int(max(0, store.CeilMillis(d))) }

func (a *args) record(t *store.Task) (err error) {
	a.buf, err = appendRecord(a.buf, t)
	a.end()
	return err
}

// newRecord adds the record of a task that was not edited, whatever it says.
func (a *args) newRecord(t *store.Task) error {
	if t.Edits != 0 {
		fresh := *t
		fresh.Edits = 0
		t = &fresh
	}
	return a.record(t)
}

// append adds the arguments of another.
func (a *args) append(other *args) {
	start := len(a.buf)
	a.buf = append(a.buf, other.buf...)
	for _, end := range other.ends {
		a.ends = append(a.ends, start+end)
	}
}

// traits adds how many of the tasks have traits, and the position and traits of each.
func (a *args) traits(tasks []*store.Task, chunk []int) {
	n := 0
	for _, i := range chunk {
		if tasks[i].Traits != nil {
			n++
		}
	}
	a.int(int64(n))
	for k, i := range chunk {
		if t := tasks[i].Traits; t != nil {
			a.int(int64(k + 1))
			a.buf = record.AppendTraits(a.buf, t)
			a.end()
		}
	}
}

// tells adds the cells that tasks tell, see lua/put_tells.lua.
func (a *args) tells(tasks []*store.Task, chunk []int) {
	for k, i := range chunk {
		if cell := tasks[i].Tells; cell != "" {
			a.buf = binary.BigEndian.AppendUint16(a.buf, uint16(k+1))
			a.buf = binary.BigEndian.AppendUint16(a.buf, uint16(len(cell)))
			a.buf = append(a.buf, cell...)
		}
	}
	a.end()
}

// values returns the arguments for the client. It takes pointers, which need no
// allocation each.
func (a *args) values() []any {
	all := string(a.buf)
	parts := make([]string, len(a.ends))
	values := make([]any, len(a.ends))
	start := 0
	for i, end := range a.ends {
		parts[i] = all[start:end]
		values[i] = &parts[i]
		start = end
	}
	return values
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// overhead is about what a task takes in arguments besides its payload.
const overhead = 96

// runs adds what holds ask for: consecutive ones for the same worker and
// visibility timeout together, then the tokens of all.
func (a *args) runs(chunk []int, hold func(i int) store.Hold) {
	type run struct {
		count int
		first store.Hold
	}
	var runs []run
	for _, i := range chunk {
		h := hold(i)
		if n := len(runs); n > 0 && sameRun(&runs[n-1].first, &h) {
			runs[n-1].count++
			continue
		}
		runs = append(runs, run{1, h})
	}
	a.int(int64(len(runs)))
	for _, r := range runs {
		a.int(int64(r.count))
		a.lasting(&r.first)
		a.buf = appendWho(a.buf, r.first.Worker, r.first.Node)
		a.end()
	}
	for _, i := range chunk {
		token := hold(i).Token
		a.buf = append(a.buf, token[:]...)
	}
	a.end()
}

func sameRun(a, b *store.Hold) bool {
	return a.Worker == b.Worker && a.Node == b.Node && a.Visibility == b.Visibility && a.Before == b.Before && a.Until == b.Until && a.Ahead == b.Ahead
}

// lasting adds how long a hold lasts, and its bounds when it has any.
func (a *args) lasting(h *store.Hold) {
	ahead := min(h.Ahead, store.MaxHoldAhead).Milliseconds()
	if h.Before|h.Until == 0 && ahead <= 0 {
		a.wait(h.Visibility)
		return
	}
	a.buf = strconv.AppendInt(a.buf, max(0, store.CeilMillis(h.Visibility)), 10)
	for _, bound := range [...]int64{int64(h.Before), int64(h.Until), max(0, ahead)} {
		a.buf = strconv.AppendInt(append(a.buf, ':'), bound, 10)
	}
	a.end()
}

// bounded is a deadline that does not outlast until, when that is not 0.
func bounded(deadline, until store.Millis) store.Millis {
	if until != 0 {
		return min(deadline, until)
	}
	return deadline
}
