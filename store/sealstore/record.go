package sealstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// kind is that of the records of data keys.
const kind = "datakey"

// record is a data key as the registry keeps it. Its name is the id.
type record struct {
	Master string       `json:"master"`  // id of the key that wrapped it
	Key    []byte       `json:"key"`     // wrapped
	Made   store.Millis `json:"made_ms"` // by the clock of the node
	Node   string       `json:"node"`    // that made it

	// Retired is when its use ended, and Cleared when nothing was sealed with it any more; 0: not yet. Both
	// are by the clock of the node that wrote them.
	Retired store.Millis `json:"retired_ms,omitempty"`
	Cleared store.Millis `json:"cleared_ms,omitempty"`
}

// unneeded reports whether nothing is sealed with the key any more.
func (r *record) unneeded() bool { return r.Cleared != 0 }

// stored is a record with what the registry says of it.
type stored struct {
	record
	id      KeyID
	version int64
}

func readRecord(r *store.Record) (s stored, err error) {
	if s.id, err = parseKeyID(r.Name); err != nil {
		return s, err
	}
	if err := json.Unmarshal(r.Value, &s.record); err != nil {
		return s, fmt.Errorf("record of data key %s: %w", r.Name, err)
	}
	s.version = r.Version
	return s, nil
}

// put stores the record, and fails with ErrVersion when there is another one.
func (s *stored) put(ctx context.Context, registry store.Registry) error {
	value, err := json.Marshal(&s.record)
	if err != nil {
		return err
	}
	_, err = registry.PutRecord(ctx, store.Record{Kind: kind, Name: s.id.String(), Version: s.version, Value: value})
	return err
}

// readRecords returns the data keys of a registry, still wrapped.
func readRecords(ctx context.Context, registry store.Registry) ([]stored, error) {
	records, _, err := registry.Records(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("read data keys: %w", err)
	}
	all := make([]stored, len(records))
	for i := range records {
		if all[i], err = readRecord(&records[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// KeyError is a store whose data keys cannot be used with the master keys that are given.
type KeyError struct{ error }

func (e KeyError) Unwrap() error { return e.error }

// errSealed is about a store that is opened without a key.
var errSealed = errors.New("the store is encrypted, and no key is given")

// Check returns a KeyError for a store that has data keys: what is in it cannot be read without them.
func Check(ctx context.Context, registry store.Registry) error {
	all, err := readRecords(ctx, registry)
	if err != nil || len(all) == 0 {
		return err
	}
	return KeyError{fmt.Errorf("%w: %s", errSealed, describe(all))}
}

// describe names data keys and the master keys that wrapped them.
func describe(all []stored) string {
	const most = 8
	var ids, masters []string
	for i := range all {
		if i < most {
			ids = append(ids, all[i].id.String())
		}
		masters = append(masters, all[i].Master)
	}
	slices.Sort(masters)
	more := ""
	if len(all) > most {
		more = fmt.Sprintf(" and %d more", len(all)-most)
	}
	return fmt.Sprintf("data keys %s%s are wrapped by master key %s", strings.Join(ids, ", "), more, strings.Join(slices.Compact(masters), ", "))
}

// newRecord makes a data key and its record.
func newRecord(masters *Masters, node string, key []byte, now time.Time) *stored {
	s := &stored{id: newKeyID()}
	s.Master, s.Key = masters.wrap(s.id, key)
	s.Made, s.Node = store.Millis(now.UnixMilli()), node
	return s
}
