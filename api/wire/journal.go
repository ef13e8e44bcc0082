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

// ShowJournal is PutJournal with the sizes of values, and when they were kept.
func ShowJournal(from []store.JournalEntry) []*ddqv1.JournalEntry {
	out := PutJournal(from)
	for i := range out {
		out[i].Size, out[i].KeptAt = int64(len(from[i].Value)), StampOrNil(from[i].Kept)
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
