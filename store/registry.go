package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Record is a small value that belongs to no topic, such as a token.
type Record struct {
	Kind, Name string
	Version    int64 // the number of the change that wrote it
	Value      []byte
}

// Bounds of records. What they are checked for is ErrBadRecord.
const (
	MaxRecordBytes  = 64 << 10
	MaxRecords      = 10_000 // of a kind
	maxRecordName   = 256
	maxRecordKind   = 32
	recordKindChars = "abcdefghijklmnopqrstuvwxyz-"
)

// ErrBadRecord is returned for a record that cannot be kept: its kind, its name or its
// value is too long or none.
var ErrBadRecord = errors.New("bad record")

// ErrRegistryFull is returned by PutRecord for one record more than there may be of a kind.
var ErrRegistryFull = errors.New("too many records of the kind")

// Registry keeps records. Any node may call it; versions decide between those who change a
// record at once. Every change has a number, which rises, so that who knows the records
// needs no more than that number to see that they still are as they were.
type Registry interface {
	// PutRecord stores r when the record's version is r.Version (0: it must be absent), and
	// returns the version that it has now. ErrVersion, ErrBadRecord, ErrRegistryFull.
	PutRecord(ctx context.Context, r Record) (int64, error)

	// DeleteRecord removes a record that has that version. ErrVersion, also when it is gone.
	DeleteRecord(ctx context.Context, kind, name string, version int64) error

	// Records returns every record of a kind, by name, and the number of the last change of
	// the registry that they show.
	Records(ctx context.Context, kind string) ([]Record, int64, error)

	// RegistryChange returns the number of the last change; 0: none yet.
	RegistryChange(ctx context.Context) (int64, error)
}

// Check says what is wrong with a record, as ErrBadRecord.
func (r *Record) Check() error {
	switch {
	case r.Kind == "" || len(r.Kind) > maxRecordKind || strings.Trim(r.Kind, recordKindChars) != "":
		return fmt.Errorf("%w: kind %q", ErrBadRecord, r.Kind)
	case r.Name == "" || len(r.Name) > maxRecordName:
		return fmt.Errorf("%w: a name of %d bytes", ErrBadRecord, len(r.Name))
	case len(r.Value) > MaxRecordBytes:
		return fmt.Errorf("%w: a value of %d bytes", ErrBadRecord, len(r.Value))
	}
	return nil
}
