package record

import "github.com/ddq-io/ddq/store"

// EncodeJournal encodes a journal that goes on in another task; nil of an empty one. Names are UTF-8.
func EncodeJournal(entries []store.JournalEntry) []byte {
	if len(entries) == 0 {
		return nil
	}
	b, err := journalMessage(entries).MarshalVT()
	if err != nil {
		return nil // which the encoder never says of bytes and numbers
	}
	return b
}

// DecodeJournal reads what EncodeJournal wrote; nil of what it did not.
func DecodeJournal(b []byte) []store.JournalEntry {
	var m Journal
	if m.UnmarshalVT(b) != nil {
		return nil
	}
	return entriesOf(&m)
}

func journalMessage(entries []store.JournalEntry) *Journal {
	if len(entries) == 0 {
		return nil
	}
	m := &Journal{Entries: make([]*JournalEntry, len(entries))}
	for i, e := range entries {
		m.Entries[i] = &JournalEntry{Name: e.Name, Value: e.Value, KeptMs: int64(e.Kept)}
	}
	return m
}

func entriesOf(m *Journal) (entries []store.JournalEntry) {
	for _, e := range m.GetEntries() {
		entries = append(entries, store.JournalEntry{Name: e.GetName(), Value: e.GetValue(), Kept: store.Millis(e.GetKeptMs())})
	}
	return entries
}
