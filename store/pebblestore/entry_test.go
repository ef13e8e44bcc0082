package pebblestore

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func TestEntryComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := entry{
			state:       stage(rapid.IntRange(0, int(expired)).Draw(t, "state")),
			due:         store.Millis(rapid.Int64().Draw(t, "due")),
			fingerprint: rapid.Uint64().Draw(t, "fingerprint"),
			stamp:       rapid.Uint64().Draw(t, "stamp"),
			expires:     store.Millis(rapid.Int64().Draw(t, "expires")),
			visibility:  time.Duration(rapid.Int64().Draw(t, "visibility")),
			attempt:     rapid.IntRange(0, 1<<40).Draw(t, "attempt"),
			lastError:   rapid.String().Draw(t, "last error"),
			rewritten:   rapid.Bool().Draw(t, "rewritten"),
			history:     rapid.Bool().Draw(t, "history"),
			journal:     rapid.Bool().Draw(t, "journal"),
			indexed:     store.NewIndexSet(rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "indexed")...),
			tells:       store.CellID(rapid.String().Draw(t, "tells")),
			first:       rapid.Bool().Draw(t, "first"),
			unreadable:  rapid.Bool().Draw(t, "unreadable"),
			body:        rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
		}
		if want.state != pending {
			want.finished = store.Millis(rapid.Int64().Draw(t, "finished"))
			want.trim = store.Millis(rapid.Int64().Draw(t, "trim"))
			want.reason = store.Reason(rapid.Byte().Draw(t, "reason"))
			copy(want.token[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "token"))
		}
		stored := append(want.appendHeader(nil), want.body...)
		got, err := decodeEntry(stored)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.body) == 0 && len(want.body) == 0 {
			got.body, want.body = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		header := len(stored) - len(want.body)
		if _, err := decodeEntry(stored[:rapid.IntRange(0, header-1).Draw(t, "cut")]); err == nil {
			t.Fatal("half a header was read")
		}
	})
}

func TestHoldsComeBackAsTheyWere(t *testing.T) {
	member := rapid.Custom(func(t *rapid.T) *hold {
		return &hold{
			id:            rapid.String().Draw(t, "id"),
			token:         store.Token(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "token")),
			deadline:      store.Millis(rapid.Int64().Draw(t, "deadline")),
			attempt:       rapid.IntRange(0, 1<<40).Draw(t, "attempt"),
			by:            rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "worker"),
			stamp:         rapid.Uint64().Draw(t, "stamp"),
			taskRewritten: rapid.Bool().Draw(t, "rewritten"),
			taskHistory:   rapid.Bool().Draw(t, "history"),
			taskSays:      rapid.Bool().Draw(t, "says"),
			taskJournal:   rapid.Bool().Draw(t, "journal"),
			cancelled:     rapid.Bool().Draw(t, "cancelled"),
			started:       rapid.SampledFrom([]store.Millis{0, 5, 7}).Draw(t, "started"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(member, 1, 10).Draw(t, "holds")
		cut := rapid.IntRange(0, len(want)).Draw(t, "extended")
		got, err := decodeGroup(appendGroup(nil, want[:cut], want[cut:]))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v: %v\nwant %+v", got, err, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{entryVersion})
	f.Add((&entry{state: done, lastError: "x", attempt: 3}).appendHeader(nil))
	f.Add(appendCell(nil, &store.Cell{ID: "sa", Version: 1, Wake: 5, List: "l", Body: []byte("x")}))
	f.Add(appendParcel(nil, &store.Parcel{To: "sa", Topic: "o", Body: []byte("x")}))
	f.Add(appendParcel(nil, &store.Parcel{To: "sa", Ended: &store.Ended{ID: "a", Result: []byte("x")}}))
	f.Add(appendGroup(nil, []*hold{{id: "a", by: "w"}}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEntry(b); err == nil {
			again, err := decodeEntry(append(e.appendHeader(nil), e.body...))
			if err != nil || !reflect.DeepEqual(e, again) {
				t.Fatalf("%+v came back as %+v: %v", e, again, err)
			}
		}
		if head, body, err := decodeCell(b); err == nil {
			c := head.cell("sa", body)
			again, _, err := decodeCell(appendCell(nil, &c))
			if err != nil || again != head {
				t.Fatalf("%+v came back as %+v: %v", head, again, err)
			}
		}
		if p, err := decodeParcel(b); err == nil {
			again, err := decodeParcel(appendParcel(nil, &p))
			if err != nil || !reflect.DeepEqual(p, again) {
				t.Fatalf("%+v came back as %+v: %v", p, again, err)
			}
		}
		decodeGroup(b)            //nolint:errcheck // must not panic
		decodeMeta(b)             //nolint:errcheck // as above
		decodeOwner(b)            //nolint:errcheck // as above
		decodeTimeKey(b)          // as above
		decodeID(b)               // as above
		parseCursor(1, string(b)) //nolint:errcheck // as above
	})
}
