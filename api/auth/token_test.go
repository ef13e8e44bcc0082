package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestTokensAreReadBack(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		id, secret, hash := NewToken()
		text := secret.Reveal()
		gotID, gotHash, err := ParseToken(text)
		if err != nil || gotID != id || !gotHash.Equal(hash) || len(text) != 64 {
			t.Fatalf("%q: %q, %v, equal %v", text, gotID, err, gotHash.Equal(hash))
		}
		if seen[text] || seen[id] {
			t.Fatal("made twice")
		}
		seen[text], seen[id] = true, true
	}
}

// Whatever changes one character, or the length, is found without asking anybody.
func TestDamagedTokensAreRefused(t *testing.T) {
	_, secret, _ := NewToken()
	text := secret.Reveal()
	for i := range text {
		for _, c := range []byte("0aZ_-/\x00\xff ") {
			damaged := []byte(text)
			if damaged[i] == c {
				continue
			}
			damaged[i] = c
			if _, _, err := ParseToken(string(damaged)); !errors.Is(err, ErrBadToken) {
				t.Fatalf("byte %d as %q: %v", i, c, err)
			}
		}
		if _, _, err := ParseToken(text[:i]); err == nil {
			t.Fatalf("cut at %d", i)
		}
		swapped := []byte(text)
		if i+1 < len(text) && text[i] != text[i+1] {
			swapped[i], swapped[i+1] = text[i+1], text[i]
			if _, _, err := ParseToken(string(swapped)); err == nil {
				t.Fatalf("swapped at %d", i)
			}
		}
	}
	if _, _, err := ParseToken(text + "0"); err == nil {
		t.Error("longer")
	}
}

func TestChecksumIsCRC32(t *testing.T) {
	for _, text := range []string{"", "a", "ddq_0123456789_"} {
		if got, want := checksum(text), inDigits(big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))), sumLength); string(got[:]) != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAnotherSecretHasAnotherHash(t *testing.T) {
	_, _, a := NewToken()
	_, _, b := NewToken()
	if a.Equal(b) || !a.Equal(a) || (Hash{}).Equal(a) {
		t.Error("hashes")
	}
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func sample() Token {
	return Token{Name: "mailer", Namespace: DefaultNamespace, Expires: noon.Add(time.Hour), Grants: Grants{{Work, DefaultNamespace, "mail"}}}
}

func TestTokensThatCannotBeMade(t *testing.T) {
	for what, change := range map[string]func(*Token){
		"no name":       func(k *Token) { k.Name = "" },
		"long name":     func(k *Token) { k.Name = strings.Repeat("x", maxName+1) },
		"name no UTF-8": func(k *Token) { k.Name = "\xff" },
		"no grants":     func(k *Token) { k.Grants = nil },
		"many grants":   func(k *Token) { k.Grants = make(Grants, maxGrants+1) },
		"empty grant":   func(k *Token) { k.Grants = Grants{{}} },
		"past":          func(k *Token) { k.Expires = noon },
		"far":           func(k *Token) { k.Expires = noon.Add(maxLife + 1) },
	} {
		k := sample()
		change(&k)
		if k.Check(noon) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	k := sample()
	if err := k.Check(noon); err != nil {
		t.Error(err)
	}
	k.Expires = time.Time{}
	if err := k.Check(noon); err != nil || k.Expired(noon.AddDate(100, 0, 0)) {
		t.Errorf("never expires: %v", err)
	}
}

func TestTokensExpireAtTheirInstant(t *testing.T) {
	k := sample()
	for after, want := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
		if got := k.Expired(k.Expires.Add(after)); got != want {
			t.Errorf("%d ns after: %v", after, got)
		}
	}
}

func TestTokensStayWithinTheirMaker(t *testing.T) {
	maker := &Principal{Namespace: DefaultNamespace, Grants: Grants{{Work | Admin, DefaultNamespace, "mail*"}}, Expires: noon.Add(2 * time.Hour)}
	for what, c := range map[string]struct {
		change func(*Token)
		want   bool
	}{
		"less":         {func(*Token) {}, true},
		"as long":      {func(k *Token) { k.Expires = maker.Expires }, true},
		"longer":       {func(k *Token) { k.Expires = maker.Expires.Add(1) }, false},
		"for ever":     {func(k *Token) { k.Expires = time.Time{} }, false},
		"other topic":  {func(k *Token) { k.Grants[0].Topics = "sms" }, false},
		"all topics":   {func(k *Token) { k.Grants[0].Topics = All }, false},
		"another verb": {func(k *Token) { k.Grants[0].Verbs |= Read }, false},
		"everywhere":   {func(k *Token) { k.Grants[0].Namespace = All }, false},
	} {
		k := sample()
		c.change(&k)
		if got := k.Within(maker); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	slow := &Principal{Namespace: DefaultNamespace, Grants: maker.Grants, CallsPerSecond: 5, BytesPerSecond: 100}
	for bounds, want := range map[[2]int]bool{{5, 100}: true, {1, 1}: true, {0, 100}: false, {5, 0}: false, {6, 100}: false, {5, 101}: false} {
		k := sample()
		k.CallsPerSecond, k.BytesPerSecond = bounds[0], bounds[1]
		if got := k.Within(slow); got != want {
			t.Errorf("calls and bytes %v: %v", bounds, got)
		}
	}
	k := Token{Grants: Grants{{grantable, All, All}}}
	if !k.Within(Root()) {
		t.Error("root makes tokens for everything")
	}
}

func TestRecordsKeepNoSecret(t *testing.T) {
	id, secret, hash := NewToken()
	k := sample()
	k.ID, k.Hash = id, hash
	record, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record, []byte(secret.Reveal()[secretAt:sumAt])) {
		t.Error("the record has the secret")
	}
	var back Token
	if err := json.Unmarshal(record, &back); err != nil || !back.Hash.Equal(hash) || back.Grants[0] != k.Grants[0] {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	s := NewSecret("canary")
	type config struct {
		Key  Secret
		Keys []Secret
		P    *Secret
		own  Secret
	}
	c := config{s, []Secret{s}, &s, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&out, verb, s)
		fmt.Fprintf(&out, verb, &s)
		fmt.Fprintf(&out, verb, c)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "s", s, "p", &s, "c", c)
	}
	_ = json.NewEncoder(&out).Encode(c)
	_ = json.NewEncoder(&out).Encode(map[string]Secret{"k": s})
	if text := out.String(); strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
		t.Error(text)
	}
}

func BenchmarkToken(b *testing.B) {
	_, secret, hash := NewToken()
	for what, text := range map[string]string{"known": secret.Reveal(), "unknown": func() string { _, s, _ := NewToken(); return s.Reveal() }()} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, got, err := ParseToken(text)
				_ = err != nil || got.Equal(hash)
			}
		})
	}
}
