package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Index finds tasks by attributes. A shard knows for itself which ones it is complete
// for, since nodes learn of a change of the topic one after the other: it is complete
// for the attributes that every call which brought it a task spoke of, or for those of
// a Reindex from end to end. The rest is found by a walk.
type Index interface {
	// Lookup returns tasks, in whatever state, that have an attribute, in order of
	// their entries, at most Limit. ErrNotIndexed when the shard is not complete for it.
	Lookup(ctx context.Context, s Shard, q IndexQuery) ([]IndexEntry, error)

	// Reindex makes the shard complete for attributes, and for no others, page by
	// page: it looks at about limit tasks, and returns the cursor of the next ones,
	// which is empty at the end. Another Reindex that begins meanwhile, and an Add
	// that speaks of less, end it with ErrReindexed: then it is to begin again.
	Reindex(ctx context.Context, s Shard, set IndexSet, cursor string, limit int) (next string, err error)
}

const (
	// MaxIndexed is how many attributes a topic indexes at most.
	MaxIndexed = 4

	// MaxIndexName is the most bytes of the name of an indexed attribute.
	MaxIndexName = 254

	// maxIndexValue is the most bytes of a value that an entry has.
	maxIndexValue = 128
)

// IndexSet are names of attributes that are indexed: each behind its length in a
// byte, in order. The zero value is none.
type IndexSet string

// NewIndexSet returns the set of the names, but for those that do not have 1 to
// MaxIndexName bytes.
func NewIndexSet(names ...string) IndexSet {
	var b []byte
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if name != "" && len(name) <= MaxIndexName {
			b = append(append(b, byte(len(name))), name...)
		}
	}
	return IndexSet(b)
}

// Names returns the names of the set, in order.
func (s IndexSet) Names() (names []string) {
	for len(s) > 0 && len(s) > int(s[0]) {
		names = append(names, string(s[1:1+s[0]]))
		s = s[1+s[0]:]
	}
	return names
}

// Has reports whether a name is in the set.
func (s IndexSet) Has(name string) bool { return s != "" && slices.Contains(s.Names(), name) }

// And returns the names that are in both sets.
func (s IndexSet) And(other IndexSet) IndexSet {
	if s == other || s == "" {
		return s
	}
	return NewIndexSet(slices.DeleteFunc(s.Names(), func(name string) bool { return !other.Has(name) })...)
}

// Of returns those of the attributes that are indexed, in order of their names.
func (s IndexSet) Of(attributes []Attribute) (indexed []Attribute) {
	for _, name := range s.Names() {
		for _, a := range attributes {
			if a.Key == name {
				indexed = append(indexed, a)
			}
		}
	}
	return indexed
}

// In returns the names of the set that some attribute has.
func (s IndexSet) In(attributes []Attribute) IndexSet {
	if s == "" {
		return s
	}
	names := s.Names()
	some := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(attributes, func(a Attribute) bool { return a.Key == name })
	})
	if len(some) == len(names) {
		return s
	}
	return NewIndexSet(some...)
}

// IndexState is what the index of a shard is complete for, and the set that a Reindex
// is under way for, if Walk is not zero.
type IndexState struct {
	Ready    IndexSet
	Building IndexSet
	Walk     Token // of the Reindex
}

// Add returns the state after a task came whose node spoke of a set; empty says that
// the shard had no task before.
func (s IndexState) Add(set IndexSet, empty bool) IndexState {
	if empty {
		s.Ready = set
	}
	s.Ready = s.Ready.And(set)
	if s.Walk != (Token{}) && s.Building.And(set) != s.Building {
		s.Building, s.Walk = "", Token{}
	}
	return s
}

// Begin returns the state when a Reindex begins, which may take others out of the index.
func (s IndexState) Begin(set IndexSet) IndexState {
	return IndexState{Ready: s.Ready.And(set), Building: set, Walk: NewToken()}
}

// IndexEntry is a task in the index of an attribute. The order of entries is that of
// Value, Cut and ID.
type IndexEntry struct {
	Value string // of the attribute, without the rest if it was cut
	Cut   bool
	ID    string
}

// NewIndexEntry returns the entry of a task. A value that is long, or has a zero byte,
// is cut.
func NewIndexEntry(value, id string) IndexEntry {
	end := strings.IndexByte(value, 0)
	if end < 0 || end > maxIndexValue {
		end = min(len(value), maxIndexValue)
	}
	return IndexEntry{Value: value[:end], Cut: end < len(value), ID: id}
}

// Compare is the order of entries.
func (e IndexEntry) Compare(other IndexEntry) int {
	cut := 0
	if e.Cut != other.Cut {
		cut = -1
		if e.Cut {
			cut = 1
		}
	}
	return cmp.Or(cmp.Compare(e.Value, other.Value), cut, cmp.Compare(e.ID, other.ID))
}

// IndexQuery says which entries of an attribute to return.
type IndexQuery struct {
	Name   string
	Value  string      // that the attribute has, as far as an entry has it
	Prefix bool        // Value is how the attribute's begins
	After  *IndexEntry // behind this one; nil: from the first
	Limit  int         // > 0
}

// Wants reports whether an entry is meant. Where the value was cut, the task itself may
// turn out not to be.
func (q *IndexQuery) Wants(e IndexEntry) bool {
	want := NewIndexEntry(q.Value, "")
	if q.Prefix {
		return strings.HasPrefix(e.Value, want.Value)
	}
	return e.Value == want.Value && e.Cut == want.Cut
}
