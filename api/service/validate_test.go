package service

import (
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

var topicRule = regexp.MustCompile(`^([a-z0-9][a-z0-9-]{0,62}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// The rule is the documented one, and what it allows is safe in a key's hash tag,
// in a path and in a URL, but for the slash behind a namespace.
func FuzzTopicName(f *testing.F) {
	for _, name := range []string{"mail", "a", "0.-_", "", ".", "..", "-a", "a/b", "a}b", "a\x00", "mäil", strings.Repeat("x", 128), strings.Repeat("x", 129), "a\n", "default/a", "A/b", "a//b", "a/b/c", "/a", "a/"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, full string) {
		err := actors.CheckTopicName("topic", full)
		if allowed := topicRule.MatchString(full) && !strings.HasSuffix(full, "\n") && !strings.HasPrefix(full, "default/"); allowed != (err == nil) {
			t.Fatalf("%q: %v", full, err)
		}
		if err != nil {
			return
		}
		_, name := store.SplitName(full)
		if strings.ContainsAny(name, "{}:/") || filepath.Base(name) != name || url.PathEscape(name) != name {
			t.Errorf("%q is allowed", full)
		}
	})
}

var idRule = regexp.MustCompile(`^[!-~]{1,128}$`)

func FuzzID(f *testing.F) {
	for _, id := range []string{"a", "", " ", "a b", "~!", "\x7f", "ä", strings.Repeat("x", 128), strings.Repeat("x", 129), "0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c"} {
		f.Add(id, 12)
	}
	checked := actors.Config{}.WithDefaults().Limits
	limits := (*limits)(&checked)
	f.Fuzz(func(t *testing.T, id string, shards int) {
		err := limits.CheckID(id)
		if idRule.MatchString(id) != (err == nil) {
			t.Fatalf("%q: %v", id, err)
		}
		if shards < 1 || shards > 1<<16 {
			return
		}
		if n := place.ShardOf(id, shards); n < 0 || n >= shards || n != place.ShardOf(id, shards) {
			t.Errorf("%q lies in shard %d of %d", id, n, shards)
		}
	})
}

// A page token that is understood means one place, and is written as it was read.
func FuzzPageToken(f *testing.F) {
	f.Add(cursor{1, 3, "opaque"}.encode())
	f.Add(cursor{}.encode())
	for _, token := range []string{"", "=", "LTE6", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6", "NTo"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if c, ok := decodeCursor(token); ok && token != "" {
			if c.kind < 0 || c.shard < 0 {
				t.Errorf("%q is %+v", token, c)
			}
			if again, ok := decodeCursor(c.encode()); !ok || again != c {
				t.Errorf("%q: %+v became %+v", token, c, again)
			}
		}
	})
}

// Two requests that differ in anything that a caller says are two.
func TestFingerprintsTellEveryFieldApart(t *testing.T) {
	of := func(n NewTask) uint64 { return n.fingerprint(xxhash.New()) }
	full := NewTask{Task: store.Task{
		Payload: []byte("x"), Attributes: []store.Attribute{{Key: "a", Value: "b"}}, Expires: 1, Visibility: 1, HandlerTimeout: 1, MaxRetries: 1,
		Backoff: new(store.Backoff), Traits: new(store.Traits), Key: &store.Key{Text: "k"},
	}, When: When{Delay: 1}}
	// The id is what a fingerprint is compared under; the rest is not the caller's.
	others := []string{"ID", "Due", "Created", "Indexed", "RunOf", "StepOf", "Cause", "Trace", "Tells", "Encrypted", "Fingerprint", "Attempt", "LastError", "Edits", "Journal"}
	for i, v := 0, reflect.ValueOf(full.Task); i < v.NumField(); i++ {
		name := v.Type().Field(i).Name
		if slices.Contains(others, name) {
			continue
		}
		without := full
		field := reflect.ValueOf(&without.Task).Elem().Field(i)
		if field.IsZero() {
			t.Errorf("the sample has no %s", name)
		}
		if field.SetZero(); of(without) == of(full) {
			t.Errorf("the fingerprint does not depend on %s", name)
		}
	}
	for name, edit := range map[string]func(*NewTask){
		"delay": func(n *NewTask) { n.When.Delay++ }, "time": func(n *NewTask) { n.When.At++ }, "expire after": func(n *NewTask) { n.ExpireAfter++ },
		"slack": func(n *NewTask) { n.Slack++ }, "latest": func(n *NewTask) { n.Latest++ },
		"fingerprint of the payload": func(n *NewTask) { n.PayloadFingerprint = make([]byte, 16) },
	} {
		if other := full; of(other) == of(func() NewTask { edit(&other); return other }()) {
			t.Errorf("the fingerprint does not depend on the %s", name)
		}
	}
}

// A fingerprint of the payload stands for it, and is none itself.
func TestFingerprintsOfPayloads(t *testing.T) {
	of := func(payload, print string) uint64 {
		n := NewTask{Task: store.Task{Payload: []byte(payload)}, PayloadFingerprint: []byte(print)}
		return n.fingerprint(xxhash.New())
	}
	a, b := strings.Repeat("a", 16), strings.Repeat("b", 16)
	if of("one", a) != of("two", a) {
		t.Error("the payload counts although it has a fingerprint")
	}
	if of("one", a) == of("one", b) || of("one", a) == of("one", a+"a") {
		t.Error("two fingerprints are one")
	}
	if of("", a) == of(a, "") {
		t.Error("a fingerprint is a payload")
	}
	for n, ok := range map[int]bool{0: true, 1: false, 15: false, 16: true, 32: true, 33: false} {
		if err := checkFingerprint(make([]byte, n)); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestOrderingKeysAreChecked(t *testing.T) {
	long := strings.Repeat("k", store.MaxKey+1)
	for _, c := range []struct{ key, id, field string }{
		{long, "", "ordering_key"},
		{"a\xff", "", "ordering_key"},
		{"a", "mine", "ordering_key"},
		{"a", place.KeyedID("b"), "ordering_key"},
		{long[1:], "", ""},
		{"a", place.KeyedID("a"), ""},
	} {
		task := NewTask{Task: store.Task{ID: c.id, MaxRetries: -1, Traits: &store.Traits{OrderingKey: c.key}}}
		checked := actors.Limits{}.WithDefaults()
		limits := (*limits)(&checked)
		err := limits.checkTask(&task)
		if c.field == "" && err != nil || c.field != "" && (err == nil || err.Kind != problem.Invalid || err.Field != c.field) {
			t.Errorf("key %.10q, id %q: %v", c.key, c.id, err)
		}
	}
	both := NewTask{Task: store.Task{ID: place.KeyedID("a"), MaxRetries: -1, Key: &store.Key{Text: "k"}, Traits: &store.Traits{OrderingKey: "a"}}}
	checked := actors.Limits{}.WithDefaults()
	limits := (*limits)(&checked)
	if err := limits.checkTask(&both); err != nil {
		t.Errorf("an id made for the ordering key of a task with both keys: %v", err)
	}
}
