package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// A queue is a stream, each entry of which has one message, as an entry of a box has parcels. It is deleted
// when it is empty. The names of those that there are lie in the set of queues, all of score 0:
//
//	1  class
//	8  incarnation of the shard's topic
//	   topic that the messages go to

func queueName(q store.Queue) string {
	return string(append(binary.BigEndian.AppendUint64([]byte{byte(q.Class)}, q.Source.Life), q.To...))
}

func parseQueueName(name string, s store.Shard) (q store.Queue, ok bool) {
	if len(name) < 10 {
		return q, false
	}
	life := binary.BigEndian.Uint64([]byte(name[1:9]))
	return store.Queue{Source: s.For(life), Class: store.Class(name[0]), To: name[9:]}, true
}

// queueKey is the key of the stream of a queue. Lua knows it too, in drop.lua.
func (k *shardKeys) queueKey(q store.Queue) string {
	return fmt.Sprintf("%s:%d:%016x:%s", k[queuesKey], q.Class, q.Source.Life, q.To)
}

// queuesOf are the queues that some commits send to, for a topic of that life, and finish messages of, without their shard.
func queuesOf(commits []store.Commit, chunk []int, life uint64) (queues []store.Queue) {
	add := func(q store.Queue) {
		if !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	for _, i := range chunk {
		for k := range commits[i].Send {
			if p := &commits[i].Send[k]; p.Class != 0 {
				add(store.Queue{Source: store.Shard{Life: life}, Class: p.Class, To: p.Topic})
			}
		}
		if f := commits[i].Finish; f != nil {
			add(finished(f))
		}
	}
	return queues
}

// finished is the queue whose messages are finished, without its shard.
func finished(f *store.Finish) store.Queue {
	return store.Queue{Source: store.Shard{Life: f.Queue.Source.Life}, Class: f.Queue.Class, To: f.Queue.To}
}

// estimate is the latest that the senders of some commits take the clock for.
func estimate(commits []store.Commit, chunk []int) (us int64) {
	for _, i := range chunk {
		us = max(us, commits[i].Clock)
	}
	return us
}

func appendNumbers(b []byte, numbers []int64) []byte {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func unpackNumbers(packed string) (numbers []int64) {
	for b := []byte(packed); len(b) >= 8; b = b[8:] {
		numbers = append(numbers, int64(binary.BigEndian.Uint64(b)))
	}
	return numbers
}

// receives adds the tasks with keys, and what is about queues of others and what they have got.
func (e *commitEncoder) receives(commits []store.Commit, chunk []int) (failed error) {
	e.kind(chunk, func(i int) (n int) {
		for k, t := range commits[i].Adds {
			if t.Key == nil {
				continue
			}
			fresh := *t
			fresh.Edits = 0
			e.int(int64(k + 1))
			if err := e.keyed(&fresh); err != nil {
				failed = err
			}
			n++
		}
		return n
	})
	e.kind(chunk, func(i int) int {
		r := commits[i].Receive
		if r == nil {
			return 0
		}
		e.str(string(r.Queue.ReceiptID()))
		e.int(r.Head)
		e.buf = appendNumbers(e.buf, r.Numbers)
		e.end()
		e.buf = appendNumbers(e.buf, r.Refused)
		e.end()
		return 1
	})
	e.kind(chunk, func(i int) int {
		f := commits[i].Finish
		if f == nil {
			return 0
		}
		e.int(int64(1 + slices.Index(e.queues, finished(f))))
		for _, n := range f.Numbers {
			e.buf = append(strconv.AppendInt(e.buf, n, 10), ' ')
		}
		e.end()
		return 1
	})
	return failed
}

// keyedResults adds what became of the tasks of commits that have some with keys.
func keyedResults(commits []store.Commit, chunk []int, results []store.CommitResult, r reply) {
	for _, i := range chunk {
		if c := &commits[i]; results[i].Status == store.OK && c.Keyed() {
			results[i].Adds = make([]store.AddResult, len(c.Adds))
			for k, t := range c.Adds {
				results[i].Adds[k] = store.AddResult{Status: store.Added, ID: t.ID, Due: t.Due}
			}
		}
	}
	for _, v := range list(at(r.more, 1)) {
		all := list(v)
		c, k := int(number(at(all, 0)))-1, int(number(at(all, 1)))-1
		if c < 0 || c >= len(chunk) || k < 0 || k >= len(results[chunk[c]].Adds) {
			continue
		}
		results[chunk[c]].Adds[k] = keyedResult(commits[chunk[c]].Adds[k].ID, list(at(all, 2)), r.now())
	}
}

// Queues implements store.Queues. A queue that is emptied between its two calls is left out.
func (s *cells) Queues(ctx context.Context, shard store.Shard, after store.Queue, limit int) (heads []store.QueueHead, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	keys, from := s.keys(shard), "-"
	if after != (store.Queue{}) {
		from = "(" + queueName(after)
	}
	for len(heads) < limit {
		want := min(limit-len(heads), maxItems)
		names := redis.NewStringSliceCmd(ctx, "zrange", keys[queuesKey], from, "+", "bylex", "limit", 0, want)
		if err := s.conn.Send(ctx, keys[queuesKey], names); err != nil {
			return nil, conn.ReadError("queues", err)
		}
		if len(names.Val()) == 0 {
			break
		}
		if heads, err = s.appendHeads(ctx, heads, shard, names.Val()); err != nil {
			return nil, err
		}
		if len(names.Val()) < want {
			break
		}
		from = "(" + names.Val()[want-1]
	}
	return heads, nil
}

func (s *cells) appendHeads(ctx context.Context, heads []store.QueueHead, shard store.Shard, names []string) ([]store.QueueHead, error) {
	var queues []store.Queue
	var streams []string
	for _, name := range names {
		if q, ok := parseQueueName(name, shard); ok {
			queues, streams = append(queues, q), append(streams, s.keys(shard).queueKey(q))
		}
	}
	if len(streams) == 0 {
		return heads, nil
	}
	v, err := s.conn.Run(ctx, s.lua.queueHeads, streams, nil)
	if err != nil {
		return nil, conn.ReadError("queues", err)
	}
	for i, entry := range list(v) {
		n, packed, there := messageEntry(entry)
		if !there || i >= len(queues) {
			continue
		}
		w := &wire{b: []byte(packed)}
		heads = append(heads, store.QueueHead{Queue: queues[i], Number: n, At: store.Millis(w.uint(8))})
	}
	return heads, nil
}

// messageEntry reads the number of an entry of a stream, and what is in it.
func messageEntry(v any) (number int64, packed string, there bool) {
	e := list(v)
	if len(e) == 0 {
		return 0, "", false
	}
	id, _, _ := strings.Cut(text(e[0]), "-")
	number, err := strconv.ParseInt(id, 10, 64)
	return number, text(at(list(at(e, 1)), 1)), err == nil
}

// Messages implements store.Queues.
func (s *cells) Messages(ctx context.Context, shard store.Shard, q store.Queue, after int64, limit, bytes int) (page store.MessagePage, err error) {
	if err := s.enter(ctx); err != nil {
		return page, err
	}
	key := s.keys(shard).queueKey(q)
	v, err := s.conn.Run(ctx, s.lua.messages, []string{key}, []any{max(after, 0), max(limit, 0), min(bytes, store.MaxBodies)})
	if err != nil {
		return page, conn.ReadError("messages", err)
	}
	all := list(v)
	page.Head, _, _ = messageEntry([]any{at(all, 0)})
	last := max(after, 0)
	for _, e := range list(at(all, 1)) {
		n, packed, _ := messageEntry(e)
		last = n
		parcels, err := decodeEntry(strconv.FormatInt(n, 10), packed)
		if err != nil || len(parcels) != 1 {
			s.log.Error("unreadable message of a queue", "topic", shard.Topic, "shard", shard.N, "class", q.Class, "to", q.To, "number", n, "err", err)
			page.Unreadable = append(page.Unreadable, n)
			continue
		}
		parcels[0].Class = q.Class
		page.Messages = append(page.Messages, parcels[0])
	}
	if number(at(all, 2)) == 1 {
		page.Next = last
	}
	return page, nil
}

// Receipts implements store.Queues.
func (s *cells) Receipts(ctx context.Context, shard store.Shard, queues []store.Queue) ([]store.Receipt, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	receipts := make([]store.Receipt, 0, len(queues))
	for some := range slices.Chunk(queues, maxItems) {
		argv := make([]any, len(some))
		for i, q := range some {
			argv[i] = string(q.ReceiptID())
		}
		for rest := argv; len(rest) > 0; {
			v, err := s.conn.Run(ctx, s.lua.cells, []string{s.keys(shard)[cellsKey]}, rest)
			if err != nil {
				return nil, conn.ReadError("receipts", err)
			}
			found := list(v)
			if len(found) == 0 || len(found) > len(rest) {
				return nil, conn.ReadError("receipts", conn.ErrReply)
			}
			for i, stored := range found {
				r, err := decodeReceipt(text(stored))
				if err != nil {
					return nil, fmt.Errorf("receipts: %w: %q", err, rest[i])
				}
				receipts = append(receipts, r)
			}
			rest = rest[len(found):]
		}
	}
	return receipts, nil
}

// decodeReceipt reads the stored entity of a receipt; nothing was received where it is empty.
func decodeReceipt(stored string) (store.Receipt, error) {
	c := decodeCell("", stored)
	if stored != "" && (c.Version == 0 || len(c.Body) == 0) {
		return store.Receipt{}, store.ErrReceipt
	}
	return store.DecodeReceipt(c.Body)
}
