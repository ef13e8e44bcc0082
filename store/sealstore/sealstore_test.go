package sealstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/sealstore"
)

var mail = store.Shard{Topic: "mail"}

// bench is a store with a shard that the test owns, as a process sees it, and as it is stored.
type bench struct {
	*testing.T
	inner sealstore.Inner
	s     *sealstore.Store
	keys  *sealstore.Keys
	fence store.Fence
}

func newBench(t *testing.T) *bench {
	inner := openMemory(t)
	return benchOver(t, inner, keysOf(t, inner))
}

func benchOver(t *testing.T, inner sealstore.Inner, keys *sealstore.Keys) *bench {
	b := &bench{T: t, inner: inner, s: sealstore.New(inner, keys), keys: keys}
	session := store.Session{Node: "a", Start: store.NewToken(), TTL: time.Hour, Begin: true}
	_, err := b.s.RenewSession(t.Context(), session)
	b.ok(err)
	_, b.fence, err = b.s.Claim(t.Context(), mail, session)
	b.ok(err)
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func dueTask(id, payload string) *store.Task {
	return &store.Task{ID: id, Payload: []byte(payload), Due: 1, MaxRetries: -1, Fingerprint: 7}
}

// add adds a task to a store, which says what became of it.
func (b *bench) add(s store.Writer, t *store.Task) store.Status {
	b.Helper()
	_, results, err := s.Add(b.Context(), mail, []*store.Task{t})
	b.ok(err)
	return results[0].Status
}

func (b *bench) hold(s store.Store, id string) store.HoldResult {
	b.Helper()
	_, results, err := s.Hold(b.Context(), mail, b.fence, []store.Hold{{ID: id, Token: store.NewToken(), Visibility: time.Hour, Worker: "w"}})
	b.ok(err)
	return results[0]
}

func (b *bench) get(s store.Reader, id string) store.Snapshot {
	b.Helper()
	_, all, err := s.Get(b.Context(), mail, []string{id})
	b.ok(err)
	return all[0]
}

func TestPayloadIsSealedAndTheSameRequestIsKnownAgain(t *testing.T) {
	b := newBench(t)
	task := dueTask("a", "hello")
	if got := b.add(b.s, task); got != store.Added {
		t.Fatalf("add: %v", got)
	}
	if string(task.Payload) != "hello" || task.Encrypted {
		t.Fatal("the caller's task was changed")
	}
	kept := b.get(b.inner, "a")
	if !kept.Encrypted || bytes.Contains(kept.Payload, []byte("hello")) {
		t.Fatalf("%q is stored", kept.Payload)
	}
	if over := len(kept.Payload) - len("hello"); over != store.EncryptedBytes {
		t.Errorf("%d bytes more, want %d", over, store.EncryptedBytes)
	}
	if got := b.add(b.s, dueTask("a", "hello")); got != store.Duplicate {
		t.Errorf("the same again: %v", got)
	}
	other := dueTask("a", "other")
	other.Fingerprint = 8
	if got := b.add(b.s, other); got != store.Conflict {
		t.Errorf("another request: %v", got)
	}
	if got := b.get(b.s, "a"); string(got.Payload) != "hello" || got.Encrypted {
		t.Errorf("read as %q", got.Payload)
	}
}

// What a user stored before there were keys may begin like anything that is sealed.
func TestWhatWasStoredBeforeIsReadAsItIs(t *testing.T) {
	b := newBench(t)
	b.add(b.s, dueTask("sealed", "hello"))
	looks := string(b.get(b.inner, "sealed").Payload)
	for _, payload := range []string{"hello", looks, "\xF6" + looks, "", strings.Repeat("\xF6", 64)} {
		id := fmt.Sprintf("plain-%d", len(payload))
		b.add(b.inner, dueTask(id, payload))
		if got := b.hold(b.s, id); got.Status != store.OK || string(got.Task.Payload) != payload {
			t.Errorf("%q is held as %v", payload, got)
		}
	}
	if missed, corrupt := b.keys.Missed(), b.keys.Corrupt(); missed != 0 || corrupt != 0 {
		t.Errorf("%d and %d could not be read", missed, corrupt)
	}
}

func TestKeyOfAnotherProcessIsFound(t *testing.T) {
	b := newBench(t)
	other := sealstore.New(b.inner, keysOf(t, b.inner)) // its key is newer than what b has read
	b.add(other, dueTask("a", "hello"))
	if got := b.hold(b.s, "a"); got.Status != store.OK || string(got.Task.Payload) != "hello" {
		t.Errorf("held as %v", got)
	}
	if err := b.keys.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

// forget removes every record of a data key, and returns them.
func (b *bench) forget() []store.Record {
	b.Helper()
	records, _, err := b.inner.Records(b.Context(), "datakey")
	b.ok(err)
	for _, r := range records {
		b.ok(b.inner.DeleteRecord(b.Context(), r.Kind, r.Name, r.Version))
	}
	return records
}

func TestTaskWaitsForAKeyThatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.add(b.s, dueTask("a", "hello"))
		records := b.forget()
		late := keysOf(t, b.inner)
		s := sealstore.New(b.inner, late)
		before := time.Now()
		got := b.hold(s, "a")
		if pause := got.Due.Time().Sub(before); got.Status != store.NotDue || pause < 29*time.Second || pause > 31*time.Second {
			t.Fatalf("held as %+v, due in %v", got, pause)
		}
		if task := b.get(b.inner, "a"); task.Attempt != 0 || !task.State.Pending() {
			t.Errorf("it is %v with %d attempts", task.State, task.Attempt)
		}
		if task := b.get(s, "a"); !task.Encrypted || len(task.Payload) > 0 {
			t.Errorf("shown with payload %q", task.Payload)
		}
		if err := late.Ready(); !errors.Is(err, sealstore.ErrUnknownKey) || !strings.Contains(err.Error(), records[0].Name) {
			t.Errorf("ready: %v", err)
		}
		veiled := b.get(s, "a").Task
		_, _, err := s.Edit(t.Context(), mail, []store.Edit{{ID: "a", Task: &veiled}})
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("edit of what cannot be read: %v", err)
		}
		for _, r := range records {
			r.Version = 0
			_, err := b.inner.PutRecord(t.Context(), r)
			b.ok(err)
		}
		time.Sleep(31 * time.Second)
		if got := b.hold(s, "a"); got.Status != store.OK || string(got.Task.Payload) != "hello" || got.Task.Attempt != 1 {
			t.Errorf("with the key it is held as %+v", got)
		}
		if err := late.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
	})
}

func TestMissingKeyIsForgottenAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.add(b.s, dueTask("a", "hello"))
		b.forget()
		late := keysOf(t, b.inner)
		b.hold(sealstore.New(b.inner, late), "a")
		time.Sleep(61 * time.Second)
		if err := late.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
	})
}

func TestChangedBodyIsADeadLetter(t *testing.T) {
	for what, change := range map[string]func(p []byte) []byte{
		"one bit":     func(p []byte) []byte { p[len(p)-20] ^= 1; return p },
		"the end":     func(p []byte) []byte { return p[:len(p)-1] },
		"nearly all":  func(p []byte) []byte { return p[:8] },
		"the nonce":   func(p []byte) []byte { p[5] ^= 1; return p },
		"everything":  func(p []byte) []byte { clear(p[16:]); return p },
		"made longer": func(p []byte) []byte { return append(p, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t)
			b.add(b.s, dueTask("a", "hello"))
			kept := b.get(b.inner, "a").Task
			kept.Payload = change(kept.Payload)
			_, edited, err := b.inner.Edit(t.Context(), mail, []store.Edit{{ID: "a", Task: &kept}})
			if b.ok(err); edited[0].Status != store.OK {
				t.Fatalf("edit: %v", edited[0].Status)
			}
			if got := b.hold(b.s, "a"); got.Status != store.Corrupt {
				t.Fatalf("held as %+v", got)
			}
			if got := b.get(b.s, "a"); got.State != store.StateDead || got.Reason != store.ReasonCorrupt || got.LastError == "" {
				t.Errorf("it is %v for %v: %q", got.State, got.Reason, got.LastError)
			}
			if b.keys.Corrupt() == 0 || b.keys.Ready() != nil {
				t.Errorf("counted %d, ready: %v", b.keys.Corrupt(), b.keys.Ready())
			}
		})
	}
}

func TestBodyOfAnotherTopicDoesNotOpen(t *testing.T) {
	b := newBench(t)
	_, _, err := b.s.Add(t.Context(), store.Shard{Topic: "sms"}, []*store.Task{dueTask("a", "hello")})
	b.ok(err)
	_, all, err := b.inner.Get(t.Context(), store.Shard{Topic: "sms"}, []string{"a"})
	b.ok(err)
	b.add(b.inner, &all[0].Task)
	if got := b.hold(b.s, "a"); got.Status != store.Corrupt {
		t.Errorf("held as %+v", got)
	}
}

func TestReadOnlySealsNothing(t *testing.T) {
	b := newBench(t)
	b.add(b.s, dueTask("a", "hello"))
	keys, err := sealstore.OpenKeys(t.Context(), b.inner, masters(t, one), sealstore.Config{ReadOnly: true}, quiet())
	b.ok(err)
	s := sealstore.New(b.inner, keys)
	b.add(s, dueTask("b", "plain"))
	if got := b.get(b.inner, "b"); string(got.Payload) != "plain" {
		t.Errorf("%q is stored", got.Payload)
	}
	if got := b.get(s, "a"); string(got.Payload) != "hello" {
		t.Errorf("read as %q", got.Payload)
	}
	if keys.Known() != 1 {
		t.Errorf("%d keys, want that of the other process", keys.Known())
	}
}

func TestOpeningNeedsTheMasterKey(t *testing.T) {
	inner := openMemory(t)
	if err := sealstore.Check(t.Context(), inner); err != nil {
		t.Fatalf("a store that was never encrypted: %v", err)
	}
	keysOf(t, inner)
	var refused sealstore.KeyError
	for what, open := range map[string]func() error{
		"no key": func() error { return sealstore.Check(t.Context(), inner) },
		"another key": func() error {
			_, err := sealstore.OpenKeys(t.Context(), inner, masters(t, two), sealstore.Config{}, quiet())
			return err
		},
		"another key, to rotate": func() error {
			_, err := sealstore.Rotate(t.Context(), inner, masters(t, two))
			return err
		},
	} {
		err := open()
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		records, _, _ := inner.Records(t.Context(), "datakey")
		for _, id := range append(masters(t, one).IDs(), records[0].Name) {
			if !strings.Contains(err.Error(), id) {
				t.Errorf("%s: %v does not name %s", what, err, id)
			}
		}
	}
}

func TestRotateWrapsEveryKeyAnew(t *testing.T) {
	b := newBench(t)
	keysOf(t, b.inner)
	b.add(b.s, dueTask("a", "hello"))
	both := masters(t, two+"\n\n"+one+"\n")
	if n, err := sealstore.Rotate(t.Context(), b.inner, both); n != 2 || err != nil {
		t.Fatalf("rotated %d, %v", n, err)
	}
	if n, err := sealstore.Rotate(t.Context(), b.inner, both); n != 0 || err != nil {
		t.Fatalf("again: rotated %d, %v", n, err)
	}
	keys, err := sealstore.OpenKeys(t.Context(), b.inner, masters(t, two), sealstore.Config{}, quiet())
	b.ok(err)
	if got := b.get(sealstore.New(b.inner, keys), "a"); string(got.Payload) != "hello" {
		t.Errorf("read as %q", got.Payload)
	}
	infos, err := sealstore.List(t.Context(), b.inner, masters(t, one))
	b.ok(err)
	for _, info := range infos {
		if info.Opens || info.Master != both.IDs()[0] {
			t.Errorf("the former key still opens %+v", info)
		}
	}
}

func TestMasterKeysAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "no key",
		"\n \n":                     "no key",
		"not base64!":               "line 1",
		one + "\n" + "MTExMTExMTE=": "line 2",
		one[:40]:                    "30 bytes",
	} {
		if _, err := sealstore.ParseMasters(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", masters(t, one), masters(t, one), masters(t, one)); strings.Contains(text, one[:8]) || strings.Contains(text, "1111") {
		t.Errorf("a key is printed: %s", text)
	}
}

// A workflow must not go on with a result that somebody changed.
func TestEndOfATaskThatCannotBeReadHasFailed(t *testing.T) {
	b := newBench(t)
	task := dueTask("a", "hello")
	task.Tells = "sorder"
	b.add(b.s, task)
	_, results, err := b.s.Hold(t.Context(), mail, b.fence, []store.Hold{{ID: "a", Token: store.Token{1}, Visibility: time.Hour}})
	b.ok(err)
	if results[0].Status != store.OK {
		t.Fatalf("hold: %v", results[0].Status)
	}
	other := &spoiler{b.inner.(*memstore.Store)}
	_, _, err = sealstore.New(other, b.keys).Ack(t.Context(), mail, []store.Ack{{ID: "a", Token: store.Token{1}, Result: []byte("42")}}, time.Hour)
	b.ok(err)
	parcels, err := b.s.Parcels(t.Context(), mail, store.InBox, 0, 10)
	b.ok(err)
	if e := parcels[0].Ended; e.Kind != store.ChangeDead || e.Reason != store.ReasonCorrupt || e.Result != nil || e.Error == "" {
		t.Errorf("its cell is told %+v", e)
	}
}

// spoiler changes the results of acks on their way into the store.
type spoiler struct{ *memstore.Store }

func (s *spoiler) Ack(ctx context.Context, shard store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	for i := range acks {
		acks[i].Result[len(acks[i].Result)-1] ^= 1
	}
	return s.Store.Ack(ctx, shard, acks, retention)
}

// A process without a key hands out nothing that another one has sealed since, and says that it is not ready. What users
// wrote is theirs, whatever it looks like.
func TestWithoutAKeyNothingSealedIsHandedOut(t *testing.T) {
	inner := openMemory(t)
	keys, err := sealstore.OpenKeyless(t.Context(), inner, quiet())
	if err != nil {
		t.Fatal(err)
	}
	b := benchOver(t, inner, keys)
	looks := "\xF6abc" + string([]byte{'a' ^ 'b' ^ 'c' ^ 0xA5}) + strings.Repeat("x", 40)
	b.add(b.s, dueTask("plain", "hello"))
	token := store.NewToken()
	_, held, err := b.s.Hold(t.Context(), mail, b.fence, []store.Hold{{ID: "plain", Token: token, Visibility: time.Hour}})
	b.ok(err)
	if held[0].Status != store.OK {
		t.Fatalf("held as %v", held[0])
	}
	_, _, err = b.s.Ack(t.Context(), mail, []store.Ack{{ID: "plain", Token: token, Result: []byte(looks)}}, time.Hour)
	b.ok(err)
	past, err := b.s.History(t.Context(), mail, []string{"plain"})
	b.ok(err)
	if got := string(past[0].Result); got != looks {
		t.Errorf("the result is read as %q", got)
	}
	if err := b.keys.Ready(); err != nil {
		t.Errorf("while nobody seals: %v", err)
	}

	b.add(sealed(t, b.inner).(*sealstore.Store), dueTask("sealed", "secret"))
	if got := b.hold(b.s, "sealed"); got.Status != store.NotDue || got.Due == 0 {
		t.Errorf("held as %+v", got)
	}
	if got := b.get(b.s, "sealed"); !got.Encrypted || got.Attempt != 0 {
		t.Errorf("read as %+v", got)
	}
	if err := b.keys.Ready(); err == nil || b.keys.Missed() == 0 {
		t.Error("it is ready")
	}
	if _, err := sealstore.OpenKeyless(t.Context(), b.inner, quiet()); !errors.As(err, new(sealstore.KeyError)) {
		t.Errorf("another one starts: %v", err)
	}
}
