package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// RunRegistry runs the cases about the registry on a store that has one.
func RunRegistry(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range []struct {
		name string
		run  func(f *registryFixture)
	}{
		{"Records/RoundTrip", recordRoundTrip},
		{"Records/ChangesAreNumbered", recordChanges},
		{"Records/OfAnotherVersionStay", recordStale},
		{"Records/ThatCannotBeKept", recordBad},
		{"Records/OneOfManyChangesWins", recordRace},
		{"Records/AreBoundedInNumber", recordFull},
		{"Records/OfAClosedStore", recordClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			r, ok := s.(store.Registry)
			if !ok {
				t.Fatalf("%T has no registry", s)
			}
			c.run(&registryFixture{newFixture(t, s), r})
		})
	}
}

type registryFixture struct {
	*fixture
	r store.Registry
}

// keep stores a record, which must be accepted, and returns its version.
func (f *registryFixture) keep(r store.Record) int64 {
	f.Helper()
	v, err := f.r.PutRecord(f.ctx, r)
	f.ok("put record", err)
	return v
}

// has checks the records of a kind, and that they come with the number of the last change.
func (f *registryFixture) has(kind string, want ...store.Record) {
	f.Helper()
	got, change, err := f.r.Records(f.ctx, kind)
	f.ok("records", err)
	equal(f.fixture, "number of records", len(got), len(want))
	for i := range want {
		if got[i].Kind != want[i].Kind || got[i].Name != want[i].Name || got[i].Version != want[i].Version || !bytes.Equal(got[i].Value, want[i].Value) {
			f.Fatalf("record %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	equal(f.fixture, "change", change, f.change())
}

func (f *registryFixture) change() int64 {
	f.Helper()
	n, err := f.r.RegistryChange(f.ctx)
	f.ok("registry change", err)
	return n
}

func (f *registryFixture) stale(what string, err error) {
	f.Helper()
	if !errors.Is(err, store.ErrVersion) {
		f.Fatalf("%s: %v, want %v", what, err, store.ErrVersion)
	}
}

func recordRoundTrip(f *registryFixture) {
	f.has("token")
	all := []store.Record{
		{Kind: "token", Name: "1:2\x00\xff", Value: []byte("7:\x00\xff\r\n")},
		{Kind: "token", Name: "a", Value: bytes.Repeat([]byte("x"), store.MaxRecordBytes)},
		{Kind: "token", Name: "ab", Value: nil},
		{Kind: "tokens", Name: "b", Value: []byte("another kind")},
		{Kind: "toke", Name: "nb", Value: []byte("another kind")},
	}
	for i := range all {
		all[i].Version = f.keep(all[i])
	}
	f.has("token", all[:3]...)
	f.has("tokens", all[3])
	f.has("toke", all[4])
	f.has("to")
	f.ok("delete record", f.r.DeleteRecord(f.ctx, "token", "a", all[1].Version))
	f.has("token", all[0], all[2])
	f.has("tokens", all[3])
}

func recordChanges(f *registryFixture) {
	equal(f.fixture, "changes before any", f.change(), 0)
	a := store.Record{Kind: "token", Name: "a"}
	last := int64(0)
	rises := func(n int64) {
		f.Helper()
		if n <= last || n != f.change() {
			f.Fatalf("change %d after %d, and the registry's is %d", n, last, f.change())
		}
		last = n
	}
	a.Version = f.keep(a)
	rises(a.Version)
	a.Version = f.keep(a)
	rises(a.Version)
	f.ok("delete record", f.r.DeleteRecord(f.ctx, "token", "a", a.Version))
	rises(f.change())
	// A record that comes again is another one.
	again := f.keep(store.Record{Kind: "token", Name: "a"})
	rises(again)
	f.stale("delete of the former", f.r.DeleteRecord(f.ctx, "token", "a", a.Version))
	_, err := f.r.PutRecord(f.ctx, a)
	f.stale("put of the former", err)
}

func recordStale(f *registryFixture) {
	r := store.Record{Kind: "token", Name: "a", Value: []byte("1")}
	r.Version = f.keep(r)
	before := f.change()
	for _, version := range []int64{0, r.Version - 1, r.Version + 1, -1} {
		_, err := f.r.PutRecord(f.ctx, store.Record{Kind: "token", Name: "a", Version: version, Value: []byte("2")})
		if version != r.Version {
			f.stale("put", err)
			f.stale("delete", f.r.DeleteRecord(f.ctx, "token", "a", version))
		}
	}
	_, err := f.r.PutRecord(f.ctx, store.Record{Kind: "token", Name: "b", Version: 1})
	f.stale("put of one that is not there", err)
	f.stale("delete of one that is not there", f.r.DeleteRecord(f.ctx, "token", "b", 1))
	f.stale("delete of one that is not there", f.r.DeleteRecord(f.ctx, "token", "b", 0))
	f.has("token", r)
	equal(f.fixture, "changes", f.change(), before)
}

func recordBad(f *registryFixture) {
	long := string(bytes.Repeat([]byte("x"), 257))
	for _, r := range []store.Record{
		{Name: "a"}, {Kind: "token"}, {Kind: "To", Name: "a"}, {Kind: "a:b", Name: "a"}, {Kind: "a{", Name: "a"},
		{Kind: long, Name: "a"}, {Kind: "token", Name: long}, {Kind: "token", Name: "a", Value: make([]byte, store.MaxRecordBytes+1)},
	} {
		if _, err := f.r.PutRecord(f.ctx, r); !errors.Is(err, store.ErrBadRecord) {
			f.Errorf("kind %.9q, name %.9q, %d bytes: %v", r.Kind, r.Name, len(r.Value), err)
		}
	}
	equal(f.fixture, "changes", f.change(), 0)
}

func recordRace(f *registryFixture) {
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if _, err := f.r.PutRecord(f.ctx, store.Record{Kind: "token", Name: "a", Value: []byte(fmt.Sprint(i))}); err == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	equal(f.fixture, "winners", won.Load(), 1)
	equal(f.fixture, "changes", f.change(), 1)
}

func recordFull(f *registryFixture) {
	if testing.Short() {
		f.Skip("makes 10,000 records")
	}
	var all sync.WaitGroup
	const at = 50
	for i := range at {
		all.Go(func() {
			for n := i; n < store.MaxRecords; n += at {
				if _, err := f.r.PutRecord(f.ctx, store.Record{Kind: "token", Name: fmt.Sprint(n)}); err != nil {
					f.Errorf("record %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	if _, err := f.r.PutRecord(f.ctx, store.Record{Kind: "token", Name: "more"}); !errors.Is(err, store.ErrRegistryFull) {
		f.Errorf("one more: %v", err)
	}
	f.keep(store.Record{Kind: "other", Name: "more"})
	records, _, err := f.r.Records(f.ctx, "token")
	f.ok("records", err)
	equal(f.fixture, "records", len(records), store.MaxRecords)
	f.keep(records[0])
	f.ok("delete record", f.r.DeleteRecord(f.ctx, "token", records[1].Name, records[1].Version))
	f.keep(store.Record{Kind: "token", Name: "more"})
}

func recordClosed(f *registryFixture) {
	f.ok("close", f.s.Close())
	_, put := f.r.PutRecord(f.ctx, store.Record{Kind: "token", Name: "a"})
	_, _, list := f.r.Records(f.ctx, "token")
	_, change := f.r.RegistryChange(f.ctx)
	for _, err := range []error{put, list, change, f.r.DeleteRecord(f.ctx, "token", "a", 1)} {
		if !errors.Is(err, store.ErrClosed) {
			f.Errorf("%v, want %v", err, store.ErrClosed)
		}
	}
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	if _, err := f.r.RegistryChange(ctx); err == nil {
		f.Error("a call whose context has ended succeeds")
	}
}
