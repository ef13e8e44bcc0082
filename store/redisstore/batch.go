package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// reply is what a script about a shard answered: {us, seq, more...}.
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

// parseReply reads a reply with some parts more than the stamp.
func parseReply(v any, parts int) (reply, error) {
	switch code, _ := v.(int64); code {
	case -1:
		return reply{}, store.ErrFenced
	case -2:
		return reply{}, store.ErrSealed
	}
	all := list(v)
	if len(all) != parts+2 {
		return reply{}, fmt.Errorf("%w: %.200v", errReply, v)
	}
	return reply{
		Stamp: store.Stamp{Now: time.UnixMicro(number(all[0])).UTC(), Seq: number(all[1])},
		more:  all[2:],
	}, nil
}

func number(v any) int64 { n, _ := v.(int64); return n }
func text(v any) string  { s, _ := v.(string); return s }
func list(v any) []any   { l, _ := v.([]any); return l }

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

// chunks groups the positions of items so that one script takes each chunk: no
// more than maxItems items and maxBytes bytes, and no id twice. Items of the
// same id keep their order.
func chunks(n int, id func(i int) string, size func(i int) int) [][]int {
	var rounds [][]int // the k-th holds the k-th item of each id
	seen := make(map[string]int, n)
	for i := range n {
		k := seen[id(i)]
		seen[id(i)] = k + 1
		if k == len(rounds) {
			rounds = append(rounds, make([]int, 0, n-i))
		}
		rounds[k] = append(rounds[k], i)
	}
	var all [][]int
	for _, round := range rounds {
		start, bytes := 0, 0
		for k, i := range round {
			if k-start == maxItems || k > start && bytes+size(i) > maxBytes {
				all = append(all, round[start:k])
				start, bytes = k, 0
			}
			bytes += size(i)
		}
		all = append(all, round[start:])
	}
	return all
}

func noSize(int) int { return 0 }

// call is one call about a batch of items of a shard.
type call struct {
	what  string
	read  bool // changes nothing
	lua   *script
	shard store.Shard
	parts int // of the reply, besides the stamp
	fence *store.Fence
	ids   func(i int) string
	sizes func(i int) int
	// args encodes the items of a chunk; take reads the reply about them.
	args func(chunk []int, n count) (*args, error)
	take func(chunk []int, r reply)
	// full, if it is not nil, says that the answer has all it takes: no further script is run.
	full func() bool
	// pends says that the script can make tasks pending: it takes a count and
	// answers whether it did.
	pends bool
	adds  bool // the script takes the life of the topic, see lua/admit.lua
}

// count says whether a script raises seq, see lua/owner.lua.
type count int64

const (
	countNot    count = iota // a later script of this call will see to it
	countPended              // if this script made a task pending
	countAnyway              // an earlier script of this call did
)

// batch runs a script over n items, chunk by chunk, all at the moment of the first.
func (s *Store) batch(ctx context.Context, c call, n int) (store.Stamp, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stamp{}, err
	}
	keys := s.keys(c.shard)
	if n == 0 {
		return s.stamp(ctx, c, keys)
	}
	sizes := c.sizes
	if sizes == nil {
		sizes = noSize
	}
	var stamp store.Stamp
	all := chunks(n, c.ids, sizes)
	pended := false
	for k, chunk := range all {
		if k > 0 && c.full != nil && c.full() {
			break
		}
		r, err := s.runChunk(ctx, c, keys, chunk, whenToCount(k == len(all)-1, pended), stamp.Now)
		if err != nil && k > 0 && !c.read {
			s.countAfterPart(ctx, keys, pended)
			err = afterPart(err)
		}
		if err != nil {
			return store.Stamp{}, err
		}
		pended = pended || r.pended
		stamp = r.Stamp
		c.take(chunk, r)
	}
	return stamp, nil
}

func whenToCount(last, pended bool) count {
	switch {
	case !last:
		return countNot
	case pended:
		return countAnyway
	}
	return countPended
}

// countAfterPart raises seq for a call whose last script did not come to it, so
// that owners notice the tasks of the earlier ones. Should that fail too, they
// are noticed when the caller repeats the call or the owner looks by itself.
func (s *Store) countAfterPart(ctx context.Context, keys *shardKeys, pended bool) {
	if !pended {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := s.run(ctx, s.lua.raise, keys[:1], nil); err != nil {
		s.log.Warn("tasks of a call that broke off are not announced", "err", err)
	}
}

func (s *Store) runChunk(ctx context.Context, c call, keys *shardKeys, chunk []int, n count, moment time.Time) (reply, error) {
	a, err := c.args(chunk, n)
	if err != nil {
		return reply{}, err
	}
	if c.adds {
		a.str(lifeText(store.ShardLife{Topic: c.shard.Life}))
	}
	a.moment(moment, s.wait.mark(c))
	if err := ctx.Err(); err != nil {
		return reply{}, err // nothing was sent
	}
	v, err := s.run(ctx, c.lua, keys[:], a.values())
	if err == nil {
		var r reply
		if r, err = parseReply(v, c.parts+bit(c.pends)); err == nil {
			if c.pends {
				r.pended, r.more = number(r.more[0]) == 1, r.more[1:]
			}
			return r, nil
		}
	}
	if c.read {
		return reply{}, readError(c.what, err)
	}
	return reply{}, writeError(c.what, err)
}

// stamp answers a call about no items.
func (s *Store) stamp(ctx context.Context, c call, keys *shardKeys) (store.Stamp, error) {
	a := newArgs(2, 32)
	if c.fence != nil {
		a.fence(*c.fence)
	} else {
		a.str("")
		a.str("")
	}
	v, err := s.run(ctx, s.lua.stamp, keys[:1], a.values())
	if err != nil {
		return store.Stamp{}, readError(c.what, err)
	}
	r, err := parseReply(v, 0)
	if err != nil {
		return store.Stamp{}, readError(c.what, err)
	}
	return r.Stamp, nil
}

// place is where a task lies, as scripts tell it.
type place struct {
	kind   store.Kind // 0: nowhere
	detail string     // pending: due; running: the hold; dead, done: finished
	note   note
}

// Places as scripts number them.
const (
	placeNone = iota
	placePending
	placeRunning
	placeDead
	placeDone
)

var placeKinds = [...]store.Kind{
	placePending: store.KindPending, placeRunning: store.KindRunning, placeDead: store.KindDead, placeDone: store.KindDone,
}

func parsePlace(v []any) (p place) {
	if kind := number(at(v, 0)); kind > 0 && int(kind) < len(placeKinds) {
		p.kind = placeKinds[kind]
	}
	p.detail = text(at(v, 1))
	p.note = decodeNote(text(at(v, 2)))
	return p
}

// time is the due or finishing time of a task that is not running.
func (p place) time() store.Millis {
	ms, _ := parseMillis(p.detail)
	return ms
}

func (p place) state(now store.Millis) store.State {
	switch p.kind {
	case store.KindPending:
		return store.PendingState(p.time(), now, p.note.attempt)
	case store.KindRunning:
		return store.StateRunning
	case store.KindDone:
		return store.StateDone
	case store.KindDead:
		if p.note.reason == store.ReasonExpired {
			return store.StateExpired
		}
		return store.StateDead
	}
	return store.StateUnknown
}
