package store

// Tasks of an ordering key stand in a line of their shard, and are held one at a time
// from its head. What has never been held is in order of due times, and of ids where
// those are equal. What was held is the head until it is done, dead or deleted: while
// it runs, while it waits for its next attempt, also when that was moved, and when it
// was given back. A dead task that is requeued begins anew.

// Ordered is an unfinished task of an ordering key, pending or held.
type Ordered struct {
	Entry      // Due is 0 when it is held
	Held  bool // by a worker
}

// Ordering returns the ordering key of a task with these traits; empty is none.
func (t *Traits) Ordering() string {
	if t == nil {
		return ""
	}
	return t.OrderingKey
}

// Mark is what an idempotency key is known by in its shard. That of a task with an
// ordering key is another one than that of others: the key is one of the tasks of that
// ordering key only.
func (t *Task) Mark() string {
	order := t.Traits.Ordering()
	if order == "" {
		return t.Key.Text
	}
	return "\x00" + t.Key.Text + "\x00" + order // no idempotency key has this byte
}
