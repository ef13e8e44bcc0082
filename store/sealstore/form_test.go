package sealstore

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/ddq-io/ddq/store/memstore"
)

func TestNoncesAreOfOneSealEach(t *testing.T) {
	key, err := newDataKey(newKeyID(), make([]byte, keyBytes))
	if err != nil {
		t.Fatal(err)
	}
	s := sealer{key: key, topic: []byte("mail")}
	s.expect(3)
	seen := make(map[string]bool)
	for range 7 {
		sealed := s.seal(nil, []byte("same"))
		seen[string(sealed[len(KeyID{}):headBytes])] = true
	}
	if len(seen) != 7 || key.used.Load() != 7 {
		t.Errorf("%d nonces of %d seals, want 7", len(seen), key.used.Load())
	}
}

func TestKeysAreRenewedWhenTheyAreUsedUp(t *testing.T) {
	masters, err := ParseMasters("MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=")
	if err != nil {
		t.Fatal(err)
	}
	inner := memstore.New()
	defer inner.Close()
	k, err := OpenKeys(t.Context(), inner, masters, Config{Node: "a"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	one := k.current.Load()
	one.used.Store(maxSeals - 1)
	if got, err := k.sealing(t.Context()); got != one || err != nil {
		t.Errorf("before its last seal: %v, %v", got, err)
	}
	one.used.Store(maxSeals)
	got, err := k.sealing(t.Context())
	if err != nil || got == one || k.Known() != 2 {
		t.Errorf("after it: %v, %v, and %d keys", got, err, k.Known())
	}
	infos, err := List(t.Context(), inner, masters)
	if err != nil || len(infos) != 2 || !infos[0].Opens || !infos[1].Opens {
		t.Errorf("stored are %v, %v", infos, err)
	}
}

// BenchmarkSeal seals and opens one payload of a batch of 256.
func BenchmarkSeal(b *testing.B) {
	key, err := newDataKey(newKeyID(), make([]byte, keyBytes))
	if err != nil {
		b.Fatal(err)
	}
	topic := []byte("mail")
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			payload, s, buf := bytes.Repeat([]byte("x"), size), sealer{key: key, topic: topic}, make([]byte, 0, 2*size)
			b.SetBytes(int64(size))
			for n := 0; b.Loop(); n++ {
				if n%256 == 0 {
					s.expect(256)
				}
				if _, err := key.open(topic, s.seal(buf, payload)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
