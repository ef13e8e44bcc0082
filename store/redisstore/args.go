package redisstore

import (
	"strconv"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// maxItems and maxBytes bound what one script is given, because Redis does
// nothing else meanwhile. Lua takes about 8,000 values in one call.
const (
	maxItems = 1000
	maxBytes = 8 << 20
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
