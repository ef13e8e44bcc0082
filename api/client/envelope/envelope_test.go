package envelope_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/envelope"
)

func ring(t *testing.T, ids ...string) *envelope.Ring {
	t.Helper()
	r, err := envelope.NewRing(ids[0])
	for _, id := range ids[1:] {
		if err == nil {
			r, err = r.Add(id)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codec(t *testing.T, r *envelope.Ring) *envelope.Codec {
	t.Helper()
	c, err := envelope.New(envelope.Config{Keys: r, FingerprintKey: r.FingerprintKey()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t *testing.T, c *envelope.Codec, topic, payload string) (encoded, fingerprint []byte) {
	t.Helper()
	encoded, fingerprint, err := c.Encode(t.Context(), topic, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return encoded, fingerprint
}

func TestWhatIsEncryptedDecryptsElsewhere(t *testing.T) {
	r := ring(t, "a")
	here, there := codec(t, r), codec(t, r)
	for _, payload := range []string{"", "x", strings.Repeat("payload", 1000)} {
		first, print := encode(t, here, "mail", payload)
		again, same := encode(t, there, "mail", payload)
		if bytes.Equal(first, again) || !bytes.Equal(print, same) || len(print) != 32 {
			t.Errorf("%.10q: two ciphertexts are one, or two fingerprints of %d bytes differ", payload, len(print))
		}
		if bytes.Contains(first, []byte("payload")) || len(first)-len(payload) > 120 {
			t.Errorf("%.10q: %d bytes in clear, or %d bytes more", payload, len(payload), len(first)-len(payload))
		}
		if got, err := there.Decode(t.Context(), "mail", first); err != nil || string(got) != payload {
			t.Errorf("got %.10q, %v", got, err)
		}
	}
}

func TestFingerprintsTellTopicsAndPayloadsApart(t *testing.T) {
	c := codec(t, ring(t, "a"))
	seen := make(map[string]string)
	for _, of := range [][2]string{{"mail", "x"}, {"mail", "y"}, {"mai", "lx"}, {"mailx", ""}, {"mail", ""}} {
		_, print := encode(t, c, of[0], of[1])
		if other, ok := seen[string(print)]; ok {
			t.Errorf("%v and %s have one fingerprint", of, other)
		}
		seen[string(print)] = fmt.Sprint(of)
	}
	_, mine := encode(t, c, "mail", "x")
	if _, other := encode(t, codec(t, ring(t, "a")), "mail", "x"); bytes.Equal(mine, other) {
		t.Error("two keys make one fingerprint")
	}
}

// Every byte counts, and the topic.
func TestWhatWasChangedDoesNotDecrypt(t *testing.T) {
	c := codec(t, ring(t, "a"))
	encoded, _ := encode(t, c, "mail", "hello")
	for i := range encoded {
		changed := bytes.Clone(encoded)
		changed[i] ^= 1
		if got, err := c.Decode(t.Context(), "mail", changed); !errors.Is(err, client.ErrUndecodable) {
			t.Fatalf("byte %d: %q, %v", i, got, err)
		}
		if got, err := c.Decode(t.Context(), "mail", encoded[:i]); !errors.Is(err, client.ErrUndecodable) {
			t.Fatalf("%d bytes: %q, %v", i, got, err)
		}
	}
	if got, err := c.Decode(t.Context(), "sms", encoded); !errors.Is(err, envelope.ErrCorrupt) {
		t.Errorf("in another topic: %q, %v", got, err)
	}
	if got, err := c.Decode(t.Context(), "mail", append(bytes.Clone(encoded), 0)); !errors.Is(err, envelope.ErrCorrupt) {
		t.Errorf("with a byte more: %q, %v", got, err)
	}
}

func TestKeysRotate(t *testing.T) {
	begun := ring(t, "old")
	both, err := begun.Add("new")
	if err != nil {
		t.Fatal(err)
	}
	next, err := both.Use("new")
	if err != nil || !slices.Equal(next.IDs(), []string{"new", "old"}) || !slices.Equal(both.IDs(), []string{"old", "new"}) {
		t.Fatal(next, both, err)
	}
	last, err := next.Remove("old")
	if err != nil {
		t.Fatal(err)
	}
	before, print := encode(t, codec(t, begun), "mail", "x")
	after, same := encode(t, codec(t, next), "mail", "x")
	if !bytes.Equal(print, same) {
		t.Error("the fingerprint rotates")
	}
	for name, c := range map[string]struct {
		ring          *envelope.Ring
		before, after string
	}{
		"begun": {begun, "x", "new"}, "both": {both, "x", "x"}, "next": {next, "x", "x"}, "last": {last, "old", "x"},
	} {
		for payload, want := range map[string]string{string(before): c.before, string(after): c.after} {
			got, err := codec(t, c.ring).Decode(t.Context(), "mail", []byte(payload))
			var missing *envelope.KeyError
			switch {
			case want == "x" && (err != nil || string(got) != "x"):
				t.Errorf("%s: %q, %v", name, got, err)
			case want != "x" && (!errors.As(err, &missing) || missing.ID != want || !errors.Is(err, client.ErrUndecodable)):
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	if _, err := next.Remove("new"); err == nil {
		t.Error("the key that encrypts was removed")
	}
	if _, err := next.Use("other"); err == nil {
		t.Error("a key that is not there encrypts")
	}
	if _, err := next.Add("new"); err == nil {
		t.Error("two keys have one id")
	}
}

// TestAnotherKeyOfThatName: who finds the id finds no payload.
func TestAnotherKeyOfThatName(t *testing.T) {
	encoded, _ := encode(t, codec(t, ring(t, "a")), "mail", "x")
	if got, err := codec(t, ring(t, "a")).Decode(t.Context(), "mail", encoded); !errors.Is(err, envelope.ErrCorrupt) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestPlainPayloads(t *testing.T) {
	r := ring(t, "a")
	strict := codec(t, r)
	if got, err := strict.Decode(t.Context(), "mail", []byte("plain")); !errors.Is(err, envelope.ErrPlain) || !errors.Is(err, client.ErrUndecodable) {
		t.Errorf("got %q, %v", got, err)
	}
	lenient, err := envelope.New(envelope.Config{Keys: r, FingerprintKey: r.FingerprintKey(), AcceptPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lenient.Decode(t.Context(), "mail", []byte("plain")); err != nil || string(got) != "plain" {
		t.Errorf("got %q, %v", got, err)
	}
	encoded, _ := encode(t, strict, "mail", "x")
	encoded[len(encoded)-1] ^= 1
	if got, err := lenient.Decode(t.Context(), "mail", encoded); !errors.Is(err, envelope.ErrCorrupt) {
		t.Errorf("got %q, %v", got, err)
	}
}

// counted are keys that count, and fail as they are told.
type counted struct {
	*envelope.Ring
	wraps, unwraps int
	fails          error
}

func (c *counted) Wrap(ctx context.Context, key []byte) (string, []byte, error) {
	if c.fails != nil {
		return "", nil, c.fails
	}
	c.wraps++
	return c.Ring.Wrap(ctx, key)
}

func (c *counted) Unwrap(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	if c.fails != nil {
		return nil, c.fails
	}
	c.unwraps++
	return c.Ring.Unwrap(ctx, id, wrapped)
}

func TestDataKeysAreMadeAnewEveryHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &counted{Ring: ring(t, "a")}
		c, err := envelope.New(envelope.Config{Keys: keys, FingerprintKey: keys.FingerprintKey()})
		if err != nil {
			t.Fatal(err)
		}
		var all [][]byte
		for range 3 {
			for range 100 {
				encoded, _ := encode(t, c, "mail", "x")
				all = append(all, encoded)
			}
			time.Sleep(time.Hour)
		}
		for _, encoded := range all {
			if _, err := c.Decode(t.Context(), "mail", encoded); err != nil {
				t.Fatal(err)
			}
		}
		if keys.wraps != 3 || keys.unwraps != 3 {
			t.Errorf("%d keys were wrapped and %d unwrapped; want 3", keys.wraps, keys.unwraps)
		}
	})
}

// TestKeysThatAreAway: what may be over soon is no reason to give a task up.
func TestKeysThatAreAway(t *testing.T) {
	keys := &counted{Ring: ring(t, "a")}
	encoded, _ := encode(t, codec(t, keys.Ring), "mail", "x")
	c, err := envelope.New(envelope.Config{Keys: keys, FingerprintKey: keys.FingerprintKey()})
	if err != nil {
		t.Fatal(err)
	}
	keys.fails = errors.New("no route to the key service")
	if _, _, err := c.Encode(t.Context(), "mail", nil); !errors.Is(err, keys.fails) {
		t.Errorf("encode: %v", err)
	}
	if _, err := c.Decode(t.Context(), "mail", encoded); !errors.Is(err, keys.fails) || errors.Is(err, client.ErrUndecodable) {
		t.Errorf("decode: %v", err)
	}
	keys.fails = nil
	if _, _, err := c.Encode(t.Context(), "mail", nil); err != nil {
		t.Errorf("later: %v", err)
	}
	if got, err := c.Decode(t.Context(), "mail", encoded); err != nil || string(got) != "x" {
		t.Errorf("later: %q, %v", got, err)
	}
}

func TestRingsOfFiles(t *testing.T) {
	r := ring(t, "2026-11", "2026-05")
	name := filepath.Join(t.TempDir(), "keyring")
	if err := os.WriteFile(name, []byte("# of mail\n\n"+r.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := envelope.ReadRing(name)
	if err != nil || read.Text() != r.Text() {
		t.Fatal(read, err)
	}
	encoded, _ := encode(t, codec(t, r), "mail", "x")
	if got, err := codec(t, read).Decode(t.Context(), "mail", encoded); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := envelope.ReadRing(name); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("others may read it: %v", err)
	}
	if _, err := envelope.ReadRing(name + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestBadRings(t *testing.T) {
	const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	for name, text := range map[string]string{
		"nothing": "", "no key": "fingerprint " + key, "no fingerprint key": "key a " + key, "two of an id": "fingerprint " + key + "\nkey a " + key + "\nkey a " + key,
		"two fingerprint keys": "fingerprint " + key + "\nfingerprint " + key + "\nkey a " + key, "a short key": "fingerprint " + key + "\nkey a MDEy",
		"no base64": "fingerprint " + key + "\nkey a " + key[:43] + "!", "an id with a space": "fingerprint " + key + "\nkey a b " + key,
		"a long id": "fingerprint " + key + "\nkey " + strings.Repeat("a", 65) + " " + key, "an id of another script": "fingerprint " + key + "\nkey ä " + key, "a word": "hello",
	} {
		if r, err := envelope.ParseRing(text); err == nil {
			t.Errorf("%s: %v", name, r)
		} else if strings.Contains(err.Error(), key[:8]) {
			t.Errorf("%s shows a key: %v", name, err)
		}
	}
	r, err := envelope.ParseRing("fingerprint " + key + "\nkey a " + key)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, r); text != "keyring of [a]" {
			t.Errorf("%s shows %s", format, text)
		}
	}
	for name, c := range map[string]envelope.Config{"no keys": {FingerprintKey: make([]byte, 32)}, "a short fingerprint key": {Keys: r, FingerprintKey: make([]byte, 31)}} {
		if _, err := envelope.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

var rewrite = flag.Bool("rewrite", false, "write testdata/vectors.json anew")

// vector is what any implementation has to agree with.
type vector struct {
	Topic       string `json:"topic"`
	Payload     []byte `json:"payload"`
	Encoded     []byte `json:"encoded"`
	Fingerprint []byte `json:"fingerprint"`
}

// vectors have bytes in base64.
type vectors struct {
	Keyring string   `json:"keyring"`
	Of      []vector `json:"vectors"`
}

// TestVectors: payloads that were encrypted decrypt with every later version.
func TestVectors(t *testing.T) {
	const file = "testdata/vectors.json"
	if *rewrite {
		writeVectors(t, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all vectors
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	r, err := envelope.ParseRing(all.Keyring)
	if err != nil {
		t.Fatal(err)
	}
	c := codec(t, r)
	for _, v := range all.Of {
		if got, err := c.Decode(t.Context(), v.Topic, v.Encoded); err != nil || !bytes.Equal(got, v.Payload) {
			t.Errorf("%s: %q, %v; want %q", v.Topic, got, err, v.Payload)
		}
		if _, print := encode(t, c, v.Topic, string(v.Payload)); !bytes.Equal(print, v.Fingerprint) {
			t.Errorf("%s: another fingerprint", v.Topic)
		}
	}
}

func writeVectors(t *testing.T, file string) {
	t.Helper()
	r := ring(t, "2026-05", "2026-11")
	later, err := r.Use("2026-11")
	if err != nil {
		t.Fatal(err)
	}
	all := vectors{Keyring: later.Text()}
	for i, payload := range []string{"", "hello", `{"to":"ann"}`, "\x00\xff", strings.Repeat("0123456789", 20)} {
		topic := []string{"mail", "mail.de"}[i%2]
		encoded, print := encode(t, codec(t, []*envelope.Ring{r, later}[i%2]), topic, payload)
		all.Of = append(all.Of, vector{topic, []byte(payload), encoded, print})
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzDecode(f *testing.F) {
	r, err := envelope.NewRing("a")
	if err != nil {
		f.Fatal(err)
	}
	c, err := envelope.New(envelope.Config{Keys: r, FingerprintKey: r.FingerprintKey()})
	if err != nil {
		f.Fatal(err)
	}
	good, _, err := c.Encode(context.Background(), "mail", []byte("x"))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "DDQE1", "DDQE1\x01a\xff\xff", "DDQE1\x00\x00\x00", "DDQE1\x01b\x00\x01x", string(good), string(good[:40])} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := c.Decode(t.Context(), "mail", b); err == nil && !bytes.Equal(b, good) {
			t.Errorf("%x decrypts to %q", b, got)
		} else if err != nil && !errors.Is(err, client.ErrUndecodable) {
			t.Errorf("%x: %v", b, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	r, _ := envelope.NewRing("a")
	c, _ := envelope.New(envelope.Config{Keys: r, FingerprintKey: r.FingerprintKey()})
	payload := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Encode(b.Context(), "mail", payload); err != nil {
			b.Fatal(err)
		}
	}
}
