package pebblestore

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// history is what the attempts of tasks left behind, and their results. It lies under a
// key of its own, so that whoever moves a task need not read and write it. The entry of
// the task, and its hold, say whether there is one.
type history struct{ *batch }

// read reads what is kept of a task, nothing when that cannot be read.
func (x *history) read(id string) (h store.History, err error) {
	x.key = appendIDKey(x.key[:0], x.sh.number, tableHistory, id)
	err = x.dir.Read(x.key, func(b []byte) error {
		h, err = record.DecodeHistory(b)
		if err != nil {
			x.dir.Log.Error("unreadable history of a task is left out", "topic", x.sh.name.Topic, "shard", x.sh.name.N, "task", id, "err", err)
		}
		return nil
	})
	return h, err
}

// record keeps the attempt of a hold that is over, and the result of a done task. How it
// ended is in a. The entry is written after it.
func (x *history) record(h *hold, e *entry, a store.Attempt, result []byte) error {
	var past store.History
	if e.history {
		var err error
		if past, err = x.read(h.id); err != nil {
			return err
		}
	}
	a.Number, a.Due, a.Started, a.Ended = h.attempt, e.due, h.started, x.ms
	a.Worker, a.Node = h.who()
	past.Remember(a)
	past.Result = result
	e.history = true
	b, err := record.AppendHistory(x.value[:0], past)
	if err != nil {
		return err
	}
	x.value = b
	x.key = appendIDKey(x.key[:0], x.sh.number, tableHistory, h.id)
	return x.set(x.key, x.value)
}

// forget deletes the history of a task. It may have been written any number of times.
func (x *history) forget(id string) error {
	x.key = appendIDKey(x.key[:0], x.sh.number, tableHistory, id)
	return x.remove(x.key, true)
}
