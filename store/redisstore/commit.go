package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Commit implements store.Cells. Commits about one cell or task are made by
// different scripts, and so are those that a full server refuses and those that it does not.
func (s *cells) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	results := make([]store.CommitResult, len(commits))
	if err := checkCommits(shard, f, commits); err != nil {
		return store.Stamp{}, nil, err
	}
	incarnation, keys := shard.Life, s.keys(shard)
	only, err := s.onlyServer(commits)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	stamp, err := s.batch(ctx, call{
		what: "commit", shard: shard, parts: 1, pends: true, adds: true, fence: f,
		groups: commitChunks(commits),
		luaOf: func(chunk []int) *conn.Script {
			if life.BringsWork(&commits[chunk[0]]) {
				return s.lua.commit
			}
			return s.lua.commitOn
		},
		args: func(chunk []int, n count) (*args, error) {
			a, err := commitArgs(f, commits, chunk, n, incarnation)
			if err == nil {
				a.str(only)
			}
			return a, err
		},
		moreKeys: func(chunk []int) []string {
			var streams []string
			for _, q := range queuesOf(commits, chunk, incarnation) {
				streams = append(streams, keys.queueKey(q))
			}
			return streams
		},
		take: func(chunk []int, r reply) {
			for _, i := range chunk {
				results[i] = store.CommitResult{Status: store.OK}
			}
			odd(r.more[0], len(chunk), func(k int, status store.Status, rest []any) {
				results[chunk[k]] = refused(status, rest)
			})
			keyedResults(commits, chunk, results, r)
		},
		left: func(i int) bool { return results[i].Status == store.LeftOut },
	}, len(commits))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// onlyServer is what only the server has in its INFO that commits are to be made by; empty: any may.
func (s *cells) onlyServer(commits []store.Commit) (string, error) {
	if len(commits) == 0 || commits[0].From == 0 {
		return "", nil
	}
	only, there := s.conn.OnlyServer(commits[0].From)
	if !there {
		return "", store.ErrAnotherServer
	}
	return only, nil
}

// checkCommits refuses what one script cannot do: Lua takes about 8,000 values in one call.
func checkCommits(s store.Shard, f *store.Fence, commits []store.Commit) error {
	for i := range commits {
		c := &commits[i]
		if n := c.Pieces(); n > store.MaxPieces {
			return fmt.Errorf("commit of %d pieces, at most %d", n, store.MaxPieces)
		}
		if err := errors.Join(checkDues(c.Adds), checkPuts(c.Puts), c.CheckQueues(s, f)); err != nil {
			return err
		}
	}
	return nil
}

// checkPuts refuses cells that cannot be stored, and one that is put twice: it would be in
// two lists.
func checkPuts(puts []store.Put) error {
	seen := make(map[store.CellID]bool, len(puts))
	for i := range puts {
		c := &puts[i].Cell
		if err := checkCell(c); err != nil {
			return err
		}
		if seen[c.ID] {
			return fmt.Errorf("cell %q is put twice by one commit", c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

// commitSize is about how many bytes a commit has.
func commitSize(c *store.Commit) (n int) {
	for i := range c.Puts {
		n += overhead + len(c.Puts[i].Body)
	}
	for _, t := range c.Adds {
		n += overhead + t.Bytes()
	}
	for i := range c.Acks {
		n += overhead + len(c.Acks[i].Result) + len(c.Acks[i].Say)
	}
	for i := range c.Send {
		n += overhead + c.Send[i].Size()
	}
	return n
}

// commitChunks groups the positions of commits so that one script makes each group. Its
// scripts are of one kind, those that bring work first; a commit comes behind those before it
// with which it shares a cell or a task, and none sends before one that sent earlier.
func commitChunks(commits []store.Commit) [][]int {
	var slots [][]int
	last, sent, alone := make(map[string]int), 0, 0 // slots by what is changed, of the last that sends, and behind the last with keys
	for i := range commits {
		c := &commits[i]
		slot, names := alone, changed(c)
		if c.Keyed() { // nobody knows yet which tasks have its keys
			slot = len(slots)
		}
		for _, name := range names {
			if n, there := last[name]; there {
				slot = max(slot, n+1)
			}
		}
		if len(c.Send) > 0 {
			slot = max(slot, sent)
		}
		slot += (slot + bit(!life.BringsWork(c))) % 2 // even slots bring work
		if c.Keyed() {
			alone = slot + 1
		}
		for len(slots) <= slot {
			slots = append(slots, nil)
		}
		slots[slot] = append(slots[slot], i)
		for _, name := range names {
			last[name] = slot
		}
		if len(c.Send) > 0 {
			sent = slot
		}
	}
	var all [][]int
	for _, slot := range slots {
		all = append(all, inScripts(commits, slot)...)
	}
	return all
}

// changed names the cells and tasks that a commit is about.
func changed(c *store.Commit) []string {
	names := make([]string, 0, 1+c.Pieces())
	if c.Receive != nil {
		names = append(names, "c"+string(c.Receive.Queue.ReceiptID()))
	}
	for i := range c.Puts {
		names = append(names, "c"+string(c.Puts[i].ID))
	}
	for _, t := range c.Adds {
		names = append(names, "t"+t.ID)
	}
	for _, h := range c.Under {
		names = append(names, "t"+h.ID)
	}
	for i := range c.Acks {
		names = append(names, "t"+c.Acks[i].ID)
	}
	for _, r := range c.Removes {
		names = append(names, "t"+r.ID)
	}
	for _, id := range c.Cancels {
		names = append(names, "t"+id)
	}
	return names
}

// inScripts cuts commits into as many as one script takes.
func inScripts(commits []store.Commit, slot []int) (all [][]int) {
	start, count, size := 0, 0, 0
	for k, i := range slot {
		n, bytes := commits[i].Pieces(), commitSize(&commits[i])
		if k > start && (count+n > maxItems || size+bytes > maxBytes) {
			all = append(all, slot[start:k])
			start, count, size = k, 0, 0
		}
		count, size = count+n, size+bytes
	}
	if len(slot) > 0 {
		all = append(all, slot[start:])
	}
	return all
}

// commitEncoder builds the arguments of lua/change_commits.lua: pieces of each kind, and
// which commit each is of.
type commitEncoder struct {
	*args  // the pieces
	of     []byte
	counts []uint16
	life   uint64 // of the topic
	queues []store.Queue
}

// kind adds the pieces of a kind, of each commit of a chunk.
func (e *commitEncoder) kind(chunk []int, add func(i int) (pieces int)) {
	total := 0
	for k, i := range chunk {
		n := add(i)
		for range n {
			e.of = binary.BigEndian.AppendUint16(e.of, uint16(k+1))
		}
		total += n
	}
	e.counts = append(e.counts, uint16(total))
}

func commitArgs(f *store.Fence, commits []store.Commit, chunk []int, n count, incarnation uint64) (*args, error) {
	count, size := 0, 64
	var tasks, all []*store.Task // those without a key, and all
	for _, i := range chunk {
		count, size = count+4*commits[i].Pieces(), size+commitSize(&commits[i])
		all = append(all, commits[i].Adds...)
		for _, t := range commits[i].Adds {
			if t.Key == nil {
				tasks = append(tasks, t)
			}
		}
	}
	queues := queuesOf(commits, chunk, incarnation)
	e := &commitEncoder{args: newArgs(count, size), counts: []uint16{uint16(len(chunk))}, life: incarnation, queues: queues}
	if err := e.pieces(commits, chunk); err != nil {
		return nil, err
	}
	a := newArgs(count+10, size+256)
	if f != nil {
		a.fence(*f)
	} else {
		a.str("")
		a.str("")
	}
	a.int(int64(n))
	for _, c := range e.counts {
		a.buf = binary.BigEndian.AppendUint16(a.buf, c)
	}
	a.end()
	a.buf = append(a.buf, e.of...)
	a.end()
	every := make([]int, len(tasks))
	for i := range every {
		every[i] = i
	}
	if len(all) > 0 {
		a.wordOf(spoken(all), tasks, every)
	} else {
		a.str("")
	}
	a.traits(tasks, every)
	a.append(e.args)
	for _, q := range queues {
		a.str(queueName(q))
	}
	a.int(int64(len(queues)))
	a.int(estimate(commits, chunk))
	return a, nil
}

// pieces adds them all, in the order in which the script expects them.
func (e *commitEncoder) pieces(commits []store.Commit, chunk []int) error {
	var failed error
	e.kind(chunk, func(i int) int {
		for k := range commits[i].Puts {
			e.put(&commits[i].Puts[k])
		}
		return len(commits[i].Puts)
	})
	e.kind(chunk, func(i int) int {
		for _, h := range commits[i].Under {
			e.id(h.ID)
			e.tok(h.Token)
		}
		return len(commits[i].Under)
	})
	e.kind(chunk, func(i int) int {
		for k := range commits[i].Acks {
			ack := &commits[i].Acks[k]
			e.id(ack.ID)
			e.tok(ack.Token)
			e.wait(commits[i].Retention)
			e.str(string(ack.Result))
			e.str(string(ack.Say))
			e.trace(ack.Trace)
		}
		return len(commits[i].Acks)
	})
	e.kind(chunk, func(i int) int {
		for _, r := range commits[i].Removes {
			e.id(r.ID)
			if r.Dead {
				e.int(-1)
			} else {
				e.int(int64(r.Due))
			}
		}
		return len(commits[i].Removes)
	})
	e.kind(chunk, func(i int) int {
		for _, id := range commits[i].Cancels {
			e.id(id)
		}
		return len(commits[i].Cancels)
	})
	e.kind(chunk, func(i int) (n int) {
		for _, t := range commits[i].Adds {
			if t.Key == nil {
				failed = errors.Join(failed, e.add(t))
				n++
			}
		}
		return n
	})
	e.boxes(commits, chunk)
	return errors.Join(failed, e.receives(commits, chunk))
}

func (e *commitEncoder) put(p *store.Put) {
	e.str(string(p.ID))
	e.int(p.If)
	e.buf = appendCell(e.buf, p)
	e.end()
}

func (e *commitEncoder) add(t *store.Task) error {
	e.id(t.ID)
	e.int(int64(t.Due))
	if err := e.newRecord(t); err != nil {
		return err
	}
	e.str(string(t.Tells))
	return nil
}

// boxes adds what is about parcels.
func (e *commitEncoder) boxes(commits []store.Commit, chunk []int) {
	e.kind(chunk, func(i int) int {
		for k := range commits[i].Send {
			p := &commits[i].Send[k]
			if p.Class != 0 {
				q := store.Queue{Source: store.Shard{Life: e.life}, Class: p.Class, To: p.Topic}
				e.buf = binary.BigEndian.AppendUint16(append(e.buf, '3'), uint16(1+slices.Index(e.queues, q)))
			} else {
				e.buf = strconv.AppendInt(e.buf, int64(1+bit(p.Topic != "")), 10)
			}
			e.buf = appendParcel(e.buf, p)
			e.end()
		}
		return len(commits[i].Send)
	})
	e.kind(chunk, func(i int) int {
		if commits[i].Take <= 0 {
			return 0
		}
		e.int(commits[i].Take)
		return 1
	})
	e.kind(chunk, func(i int) int {
		for _, n := range commits[i].Drop {
			e.int(n)
		}
		return len(commits[i].Drop)
	})
}

// refused is the result of a commit that something was in the way of.
func refused(status store.Status, rest []any) store.CommitResult {
	result := store.CommitResult{Status: status}
	switch id := text(at(rest, 0)); status {
	case store.Stale:
		result.Cell = decodeCell(store.CellID(id), text(at(rest, 1)))
	case store.HoldLost, store.NoCell, store.WrongState, store.Conflict:
		result.ID = parseID(id)
	case store.Received:
		result.Made, result.Refused = unpackNumbers(id), unpackNumbers(text(at(rest, 1)))
	}
	return result
}
