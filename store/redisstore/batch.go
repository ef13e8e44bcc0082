package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

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
	lua   *conn.Script
	luaOf func(chunk []int) *conn.Script // instead of lua, where it is not one for all
	shard store.Shard
	parts int // of the reply, besides the stamp
	fence *store.Fence
	ids   func(i int) string
	sizes func(i int) int
	// groups, if it is not nil, are the chunks, instead of what ids and sizes say.
	groups [][]int
	// moreKeys, if it is not nil, are keys behind those of the script.
	moreKeys func(chunk []int) []string
	// args encodes the items of a chunk; take reads the reply about them.
	args func(chunk []int, n count) (*args, error)
	take func(chunk []int, r reply)
	// left, if it is not nil, says that the script left an item out, to be short: it is for the next one.
	left func(i int) bool
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
func (s *core) batch(ctx context.Context, c call, n int) (store.Stamp, error) {
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
	all := c.groups
	if all == nil {
		all = chunks(n, c.ids, sizes)
	}
	pended := false
	for k := 0; k < len(all); k++ {
		chunk := all[k]
		if k > 0 && c.full != nil && c.full() {
			break
		}
		r, err := s.runChunk(ctx, c, keys, chunk, whenToCount(k == len(all)-1, pended), stamp.Now)
		if err != nil && k > 0 && !c.read {
			s.countAfterPart(ctx, keys, pended)
			err = conn.AfterPart(err)
		}
		if err != nil {
			return store.Stamp{}, err
		}
		pended = pended || r.pended
		stamp = r.Stamp
		c.take(chunk, r)
		if c.left == nil {
			continue
		}
		if rest := slices.DeleteFunc(slices.Clone(chunk), func(i int) bool { return !c.left(i) }); len(rest) > 0 {
			all = slices.Insert(all, k+1, rest)
		}
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
func (s *core) countAfterPart(ctx context.Context, keys *shardKeys, pended bool) {
	if !pended {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := s.conn.Run(ctx, s.lua.raise, keys[:1], nil); err != nil {
		s.log.Warn("tasks of a call that broke off are not announced", "err", err)
	}
}

func (s *core) runChunk(ctx context.Context, c call, keys *shardKeys, chunk []int, n count, moment time.Time) (reply, error) {
	a, err := c.args(chunk, n)
	if err != nil {
		return reply{}, err
	}
	if c.adds {
		a.str(lifeText(store.ShardLife{Topic: c.shard.Life}))
	}
	a.moment(moment, s.conn.Mark(!c.read))
	if err := ctx.Err(); err != nil {
		return reply{}, err // nothing was sent
	}
	lua := c.lua
	if c.luaOf != nil {
		lua = c.luaOf(chunk)
	}
	named := keys.of(lua)
	if c.moreKeys != nil {
		named = append(named, c.moreKeys(chunk)...)
	}
	v, err := s.conn.Run(ctx, lua, named, a.values())
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
		return reply{}, conn.ReadError(c.what, err)
	}
	return reply{}, conn.WriteError(c.what, err)
}

// stamp answers a call about no items.
func (s *core) stamp(ctx context.Context, c call, keys *shardKeys) (store.Stamp, error) {
	a := newArgs(2, 32)
	if c.fence != nil {
		a.fence(*c.fence)
	} else {
		a.str("")
		a.str("")
	}
	v, err := s.conn.Run(ctx, s.lua.stamp, keys[:1], a.values())
	if err != nil {
		return store.Stamp{}, conn.ReadError(c.what, err)
	}
	r, err := parseReply(v, 0)
	if err != nil {
		return store.Stamp{}, conn.ReadError(c.what, err)
	}
	return r.Stamp, nil
}
