package store

import "slices"

// Bounds of a journal.
const (
	MaxJournalName  = 128       // bytes of a name, which has at least one
	MaxJournalValue = 256 << 10 // bytes of a value
	MaxJournalNames = 1000
	MaxJournalBytes = 1 << 20 // of all its names and values
)

// JournalEntry is what a name of a task returned.
type JournalEntry struct {
	Name  string
	Value []byte
	Kept  Millis // when the store kept it; of no meaning in a checkpoint

	Encrypted bool // nobody can read the value without a key, see EncryptedBytes
}

// EncryptedBytes is how many bytes more a value has that is marked as encrypted. They count for no bound.
const EncryptedBytes = 32

// Size is how many bytes an entry counts.
func (e *JournalEntry) Size() int {
	n := len(e.Name) + len(e.Value)
	if e.Encrypted {
		n -= EncryptedBytes
	}
	return n
}

// Checkpoint adds an entry to the journal of a task that is held.
type Checkpoint struct {
	ID    string
	Token Token
	JournalEntry
}

// Remembered is all that names of the task returned: of a step that goes on, in the tasks before this
// one, too. A name keeps what it returned first.
func (t *Task) Remembered() []JournalEntry {
	if t.StepOf == nil || len(t.StepOf.Journal) == 0 {
		return t.Journal
	}
	all, known := slices.Clone(t.StepOf.Journal), make(map[string]bool)
	for i := range all {
		known[all[i].Name] = true
	}
	for _, e := range t.Journal {
		if !known[e.Name] {
			all = append(all, e)
		}
	}
	return all
}

// journalBytes is how many bytes the entries of a journal have together.
func journalBytes(entries []JournalEntry) (n int) {
	for i := range entries {
		n += entries[i].Size()
	}
	return n
}
