package life

import "github.com/ddq-io/ddq/store"

// Checkpoint is what becomes of a checkpoint, as far as the hold decides.
func Checkpoint(t *Task, token store.Token) store.Status { return holder(t, token) }

// Journal is what becomes of an entry for a journal of so many names and bytes; known: the
// name has an entry.
func Journal(e *store.JournalEntry, names, bytes int, known bool) store.Status {
	switch {
	case known:
		return store.Already
	case names >= store.MaxJournalNames || bytes+e.Size() > store.MaxJournalBytes:
		return store.JournalFull
	}
	return store.OK
}
