package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// queues are the outbox queues of a shard that have messages.
type queues struct {
	last   int64 // the number of the last message, over all of them
	byName map[store.Queue][]store.Message
}

func newQueues() queues { return queues{byName: make(map[store.Queue][]store.Message)} }

// local is the name of a queue in its source.
func local(q store.Queue) store.Queue {
	q.Source = store.Shard{Life: q.Source.Life}
	return q
}

// push appends a message to the queue that it is sent to by a topic of a life.
func (x *queues) push(p store.Message, c *store.Commit, life uint64, now clock) {
	q := store.Queue{Source: store.Shard{Life: life}, Class: p.Class, To: p.Topic}
	x.last = c.Number(x.last, now.At.UnixMicro())
	p.Number, p.At, p.Body = x.last, now.Millis(), slices.Clone(p.Body)
	x.byName[q] = append(x.byName[q], p)
}

func (x *queues) finish(f *store.Finish) {
	q := local(f.Queue)
	left := slices.DeleteFunc(x.byName[q], func(p store.Message) bool { return slices.Contains(f.Numbers, p.Number) })
	if x.byName[q] = left; len(left) == 0 {
		delete(x.byName, q)
	}
}

// len is how many messages there are.
func (x *queues) len() (n int64) {
	for _, messages := range x.byName {
		n += int64(len(messages))
	}
	return n
}

func (x *queues) clone() queues {
	c := newQueues()
	c.last = x.last
	for q, messages := range x.byName {
		c.byName[q] = slices.Clone(messages)
	}
	return c
}

// page returns the messages of a queue behind a number.
func (x *queues) page(q store.Queue, after int64, limit, bytes int) (page store.MessagePage) {
	size := 0
	for i, p := range x.byName[local(q)] {
		if i == 0 {
			page.Head = p.Number
		}
		if p.Number <= after {
			continue
		}
		if len(page.Messages) >= limit || len(page.Messages) > 0 && size >= min(bytes, store.MaxBodies) {
			page.Next = after
			break
		}
		after = p.Number
		p.Body = slices.Clone(p.Body)
		size += p.Size()
		page.Messages = append(page.Messages, p)
	}
	return page
}

// Queues implements store.Queues.
func (m cellTable) Queues(ctx context.Context, s store.Shard, after store.Queue, limit int) ([]store.QueueHead, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var heads []store.QueueHead
	for q, messages := range m.shard(s).queues.byName {
		if after == (store.Queue{}) || q.Compare(after) > 0 {
			q.Source = s.For(q.Source.Life)
			heads = append(heads, store.QueueHead{Queue: q, Number: messages[0].Number, At: messages[0].At})
		}
	}
	slices.SortFunc(heads, func(a, b store.QueueHead) int { return a.Queue.Compare(b.Queue) })
	return heads[:min(max(limit, 0), len(heads))], nil
}

// Messages implements store.Queues.
func (m cellTable) Messages(ctx context.Context, s store.Shard, q store.Queue, after int64, limit, bytes int) (store.MessagePage, error) {
	if err := m.enter(ctx); err != nil {
		return store.MessagePage{}, err
	}
	defer m.mu.Unlock()
	return m.shard(s).queues.page(q, after, limit, bytes), nil
}

// Receipts implements store.Queues.
func (m cellTable) Receipts(ctx context.Context, s store.Shard, queues []store.Queue) ([]store.Receipt, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	receipts := make([]store.Receipt, len(queues))
	for i, q := range queues {
		r, err := sh.receipt(q)
		if err != nil {
			return nil, err
		}
		receipts[i] = r
	}
	return receipts, nil
}

// receipt is what the shard has received of a queue.
func (sh *shard) receipt(q store.Queue) (store.Receipt, error) {
	id := q.ReceiptID()
	r, err := store.DecodeReceipt(sh.cells.byID[id].Body)
	if err != nil {
		return r, fmt.Errorf("%w: %q", err, id)
	}
	return r, nil
}

// receive writes the receipt of a commit that was checked; notMade are those of its numbers that are refused.
func (sh *shard) receive(rc *store.Receive, notMade []int64) {
	id := rc.Queue.ReceiptID()
	was, _ := store.DecodeReceipt(sh.cells.byID[id].Body) // as was checked
	next := was.Take(rc, notMade)
	sh.cells.put(&store.Put{Cell: store.Cell{ID: id, Body: next.Append(nil)}})
}
