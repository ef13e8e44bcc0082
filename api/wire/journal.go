package wire

import (
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// PutJournal converts the journal of a task; nil of an empty one.
func PutJournal(from []store.JournalEntry) []*ddqv1.JournalEntry {
	if len(from) == 0 {
		return nil
	}
	out := make([]*ddqv1.JournalEntry, len(from))
	for i, e := range from {
		out[i] = &ddqv1.JournalEntry{Name: Text(e.Name), Value: e.Value}
	}
	return out
}

// ReadJournal is the opposite of PutJournal.
func ReadJournal(from []*ddqv1.JournalEntry) []store.JournalEntry {
	if len(from) == 0 {
		return nil
	}
	out := make([]store.JournalEntry, len(from))
	for i, e := range from {
		out[i] = store.JournalEntry{Name: e.GetName(), Value: e.GetValue()}
	}
	return out
}
