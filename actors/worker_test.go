package actors

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

func FuzzHoldToken(f *testing.F) {
	f.Add(encodeToken(11, store.Token{1, 2, 3}))
	f.Add([]byte{})
	f.Add(make([]byte, tokenSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		shard, token, ok := decodeToken(b)
		if ok && string(encodeToken(shard, token)) != string(b) {
			t.Errorf("%x became %x", b, encodeToken(shard, token))
		}
	})
}
