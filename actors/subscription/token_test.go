package subscription

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

func FuzzHoldToken(f *testing.F) {
	f.Add(EncodeToken(11, store.Token{1, 2, 3}))
	f.Add([]byte{})
	f.Add(make([]byte, TokenSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		shard, token, ok := DecodeToken(b)
		if ok && string(EncodeToken(shard, token)) != string(b) {
			t.Errorf("%x became %x", b, EncodeToken(shard, token))
		}
	})
}
