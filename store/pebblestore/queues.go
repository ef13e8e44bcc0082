package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// queues are the outbox queues of a shard. A message lies under the class, the incarnation of its topic, the
// topic that it goes to and a zero byte, and its number: so those of a queue are in order, and so are queues.
type queues struct{ *batch }

func appendQueue(b []byte, number uint32, q store.Queue) []byte {
	b = append(appendPrefix(b, number, tableQueues), byte(q.Class))
	b = binary.BigEndian.AppendUint64(b, q.Source.Life)
	return append(append(b, q.To...), 0)
}

func appendMessageKey(b []byte, number uint32, q store.Queue, n int64) []byte {
	return binary.BigEndian.AppendUint64(appendQueue(b, number, q), uint64(n))
}

// decodeMessageKey reads what appendMessageKey wrote, of messages of a shard.
func decodeMessageKey(key []byte, s store.Shard) (q store.Queue, n int64, ok bool) {
	rest := key[prefixLen:]
	if len(rest) < 1+8+1+8 || rest[len(rest)-9] != 0 {
		return q, 0, false
	}
	q.Class = store.Class(rest[0])
	q.Source = s.For(binary.BigEndian.Uint64(rest[1:]))
	q.To = string(rest[9 : len(rest)-9])
	return q, int64(binary.BigEndian.Uint64(rest[len(rest)-8:])), true
}

// push appends a message of a commit to the queue that it is sent to by a topic of a life.
func (x *queues) push(p *store.Message, c *store.Commit, life uint64) error {
	last := c.Number(max(x.sh.meta.queues.last, x.next.queues.sent), x.now.UnixMicro())
	x.next.queues.sent = last
	x.next.queues.queued++
	x.next.queues.stored = true
	stamped := *p
	stamped.At = x.ms
	q := store.Queue{Source: store.Shard{Life: life}, Class: p.Class, To: p.Topic}
	x.key = appendMessageKey(x.key[:0], x.sh.number, q, last)
	x.value = appendParcel(x.value[:0], &stamped)
	return x.set(x.key, x.value)
}

// finish forgets messages, but none of this batch.
func (x *queues) finish(f *store.Finish) error {
	there, err := x.lying(f)
	if err != nil {
		return err
	}
	for _, n := range there {
		x.key = appendMessageKey(x.key[:0], x.sh.number, f.Queue, n)
		if x.next.queues.finished[string(x.key)] {
			continue
		}
		if x.next.queues.finished == nil {
			x.next.queues.finished = make(map[string]bool)
		}
		x.next.queues.finished[string(x.key)] = true
		x.next.queues.queued--
		if err := x.remove(x.key, false); err != nil {
			return err
		}
	}
	return nil
}

// lying is which of the messages that are to be finished are there. They are those of a page, or most of it: so the queue
// is read from the first to the last of them, unless many others lie in between, and the rest are looked up.
func (x *queues) lying(f *store.Finish) (there []int64, err error) {
	left := slices.Compact(slices.Sorted(slices.Values(f.Numbers)))
	if len(left) == 0 {
		return nil, nil
	}
	others := 0
	lower, upper := appendMessageKey(nil, x.sh.number, f.Queue, left[0]), appendMessageKey(nil, x.sh.number, f.Queue, left[len(left)-1]+1)
	err = x.dir.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		n := int64(binary.BigEndian.Uint64(key[len(key)-8:]))
		for len(left) > 0 && left[0] < n {
			left = left[1:]
		}
		if len(left) > 0 && left[0] == n {
			there, left = append(there, n), left[1:]
		} else {
			others++
		}
		return others <= len(f.Numbers), nil
	})
	if err != nil || others <= len(f.Numbers) {
		return there, err
	}
	for _, n := range left {
		x.key = appendMessageKey(x.key[:0], x.sh.number, f.Queue, n)
		is, err := x.has(x.key)
		if err != nil {
			return nil, err
		}
		if is {
			there = append(there, n)
		}
	}
	return there, nil
}

// page reads the messages of a queue behind a number.
func (x *queues) page(q store.Queue, after int64, limit, maxBytes int) (page store.MessagePage, err error) {
	from, err := x.head(q, &page)
	if err != nil || page.Head == 0 || limit <= 0 {
		return page, err
	}
	size, last := 0, after
	lower, upper := appendMessageKey(nil, x.sh.number, q, max(from, after+1)), afterQueue(x.sh.number, q)
	err = x.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
		n := int64(binary.BigEndian.Uint64(key[len(key)-8:]))
		had := len(page.Messages) + len(page.Unreadable)
		if had >= limit || had > 0 && size >= min(maxBytes, store.MaxBodies) {
			page.Next = last
			return false, nil
		}
		last = n
		p, err := decodeParcel(value)
		if err != nil {
			x.dir.Log.Error("unreadable message of a queue", "topic", x.sh.name.Topic, "shard", x.sh.name.N, "class", q.Class, "to", q.To, "number", n, "err", err)
			page.Unreadable = append(page.Unreadable, n)
			return true, nil
		}
		p.Number, p.Class = n, q.Class
		size += p.Size()
		page.Messages = append(page.Messages, p)
		return true, nil
	})
	return page, err
}

// head finds the first message of a queue, and returns from where to read. It begins at the first one there can be, as
// the deleted ones before it are costly to pass.
func (x *queues) head(q store.Queue, page *store.MessagePage) (from int64, err error) {
	name := string(appendQueue(nil, x.sh.number, q))
	from = x.sh.meta.queues.last + 1
	lower := binary.BigEndian.AppendUint64([]byte(name), uint64(x.sh.queueHeads[name]))
	err = x.dir.Scan(lower, afterQueue(x.sh.number, q), func(key, _ []byte) (bool, error) {
		page.Head = int64(binary.BigEndian.Uint64(key[len(key)-8:]))
		from = page.Head
		return false, nil
	})
	if err != nil {
		return 0, err
	}
	if x.sh.queueHeads == nil {
		x.sh.queueHeads = make(map[string]int64)
	}
	x.sh.queueHeads[name] = from
	return from, nil
}

// afterQueue is a key behind all messages of a queue.
func afterQueue(number uint32, q store.Queue) []byte {
	return append(appendQueue(nil, number, q), bytes.Repeat([]byte{0xff}, 9)...)
}

// heads reads the queues behind one, and their first messages.
func (x *queues) heads(after store.Queue, limit int) (heads []store.QueueHead, err error) {
	lower, upper := appendPrefix(nil, x.sh.number, tableQueues), appendPrefix(nil, x.sh.number, tableQueues+1)
	if after != (store.Queue{}) {
		lower = afterQueue(x.sh.number, after)
	}
	for found := true; found && len(heads) < limit; {
		found = false
		if err = x.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
			q, n, ok := decodeMessageKey(key, x.sh.name)
			if !ok {
				return false, fmt.Errorf("malformed key of a message: %x", key)
			}
			at := input{b: value}
			at.byte()
			heads, found = append(heads, store.QueueHead{Queue: q, Number: n, At: store.Millis(at.uint64())}), true
			lower = afterQueue(x.sh.number, q)
			return false, nil
		}); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// queueMeta are the numbers of the queues of a shard.
type queueMeta struct {
	last    int64 // number of the last message, over all queues
	waiting int64 // messages in all of them
}

func (m queueMeta) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.last)), uint64(m.waiting))
}

func (m *queueMeta) read(in *input) { m.last, m.waiting = int64(in.uvarint()), int64(in.uvarint()) }

// Queues implements store.Queues.
func (s cellKeeper) Queues(ctx context.Context, name store.Shard, after store.Queue, limit int) (heads []store.QueueHead, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		heads, err = t.queues.heads(after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

// Messages implements store.Queues.
func (s cellKeeper) Messages(ctx context.Context, name store.Shard, q store.Queue, after int64, limit, maxBytes int) (page store.MessagePage, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		page, err = t.queues.page(q, after, limit, maxBytes)
		return err
	})
	if err != nil {
		return store.MessagePage{}, err
	}
	return page, nil
}

// Receipts implements store.Queues.
func (s cellKeeper) Receipts(ctx context.Context, name store.Shard, queues []store.Queue) ([]store.Receipt, error) {
	receipts := make([]store.Receipt, len(queues))
	_, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		for i, q := range queues {
			if receipts[i], err = t.cells.receipt(q.ReceiptID()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// receipt reads a receipt without the changes.
func (c *cells) receipt(id store.CellID) (r store.Receipt, err error) {
	cell, err := c.get(id)
	if err != nil {
		return r, fmt.Errorf("%w: %q: %w", store.ErrReceipt, id, err)
	}
	if r, err = store.DecodeReceipt(cell.Body); err != nil {
		return r, fmt.Errorf("%w: %q", err, id)
	}
	return r, nil
}

// checkReceive says whether what a commit receives is not settled.
func (t *committer) checkReceive(c *store.Commit) (store.CommitResult, error) {
	if c.Receive == nil {
		return store.CommitResult{Status: store.OK}, nil
	}
	r, err := t.cells.receipt(c.Receive.Queue.ReceiptID())
	if err != nil {
		return store.CommitResult{}, err
	}
	t.receipt = r
	return r.Check(c.Receive), nil
}

// receive writes the receipt of a commit that was checked, once its tasks came to what they did.
func (t *committer) receive(rc *store.Receive, adds []store.AddResult) error {
	id := rc.Queue.ReceiptID()
	old, err := t.cells.head(id)
	if err != nil {
		return err
	}
	settled, refused := rc.Outcome(adds)
	made := *rc
	made.Numbers = settled
	next := t.receipt.Take(&made, refused)
	t.cellIDs.note(string(id))
	t.next.queues.stored = true
	return t.cells.put(&store.Put{Cell: store.Cell{ID: id, Body: next.Append(nil)}}, &old)
}

// addKeyed adds the tasks of a commit of which one has a key.
func (t *committer) addKeyed(c *store.Commit) ([]store.AddResult, error) {
	k := keyedAdder{t.adds, marks{t.transaction}}
	keying, results := store.NewKeying(c), make([]store.AddResult, len(c.Adds))
	for i, task := range c.Adds {
		if task.Key == nil {
			results[i] = store.AddResult{Status: store.Added, ID: task.ID, Due: task.Due}
			if err := t.add(task, t.free[i]); err != nil {
				return nil, err
			}
			continue
		}
		m, err := k.marks.get(task.Mark())
		if err != nil {
			return nil, err
		}
		holder := ""
		if m != nil {
			holder = m.id
		}
		if !keying.Takes(task, holder) {
			results[i] = store.AddResult{Status: store.LeftOut, ID: task.ID}
			continue
		}
		if results[i], err = k.addKeyed(task); err != nil {
			return nil, err
		}
		if results[i].Status == store.Replaced {
			t.ids.note(holder)
		}
		t.keyed++
	}
	return results, nil
}
