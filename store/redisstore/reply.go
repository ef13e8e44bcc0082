package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// reply is what a script about a shard answered: {us, seq, inbox, more...}.
type reply struct {
	store.Stamp
	pended bool // the script made a task pending
	more   []any
}

func (r reply) now() store.Millis { return store.Millis(r.Now.UnixMilli()) }

// later is the moment d from now as scripts compute it: rounded up.
func (r reply) later(d time.Duration) store.Millis {
	return store.Millis((r.Now.UnixMicro() + 999) / 1000).Add(max(0, d))
}

// due is when a task is due again after a delay: at once without one.
func (r reply) due(delay time.Duration) store.Millis {
	if delay <= 0 {
		return r.now()
	}
	return r.later(delay)
}

// parseReply reads a reply with some parts more than the stamp. Scripts leave the last ones
// out that they have nothing for.
func parseReply(v any, parts int) (reply, error) {
	switch code, _ := v.(int64); code {
	case -1:
		return reply{}, store.ErrFenced
	case -2:
		return reply{}, store.ErrSealed
	case -3:
		return reply{}, store.ErrAnotherServer
	case -4:
		return reply{}, store.ErrReceipt
	}
	all := list(v)
	if len(all) < parts+3 {
		return reply{}, fmt.Errorf("%w: %.200v", conn.ErrReply, v)
	}
	return reply{
		Stamp: store.Stamp{Now: time.UnixMicro(number(all[0])).UTC(), Seq: number(all[1]), In: number(all[2])},
		more:  all[3:],
	}, nil
}

func number(v any) int64 { n, _ := v.(int64); return n }

func text(v any) string { s, _ := v.(string); return s }

func list(v any) []any { l, _ := v.([]any); return l }

// at returns an entry of a list, nil when it is shorter.
func at(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return nil
}

// texts returns the strings of a list, which may be one string with spaces in between.
func texts(v any) []string {
	if s, ok := v.(string); ok {
		return strings.Split(s, " ")
	}
	all := make([]string, len(list(v)))
	for i, e := range list(v) {
		all[i] = text(e)
	}
	return all
}

// traitsAt reads an entry of a list of traits. Those that cannot be read are taken for
// none, and so are those of a task whose list is not there.
func traitsAt(l []any, i int) *store.Traits {
	t, _ := record.DecodeTraits([]byte(text(at(l, i))))
	return t
}

// odd calls do for what a script says about items that did not go as expected:
// their position in the chunk and the rest of what it says.
func odd(v any, count int, do func(i int, status store.Status, rest []any)) {
	for _, entry := range list(v) {
		e := list(entry)
		if i := int(number(at(e, 0))) - 1; len(e) >= 2 && i >= 0 && i < count {
			do(i, store.Status(number(e[1])), e[2:])
		}
	}
}

// parseEntries reads what the window scripts answer.
func parseEntries(v any) (reply, []store.Entry, error) {
	r, err := parseReply(v, 2)
	if err != nil {
		return reply{}, nil, conn.ReadError("window", err)
	}
	flat, traits := list(r.more[0]), list(r.more[1])
	entries := make([]store.Entry, 0, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		due, err := parseMillis(text(flat[i+1]))
		if err != nil {
			return reply{}, nil, conn.ReadError("window", err)
		}
		entries = append(entries, store.Entry{ID: parseID(text(flat[i])), Due: due, Traits: traitsAt(traits, i/2)})
	}
	return r, entries, nil
}
