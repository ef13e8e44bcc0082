package nodes

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

// A page token that is understood means one place, and is written as it was read.
func FuzzPageToken(f *testing.F) {
	f.Add(encodeShard(store.Shard{Topic: "mail", N: 7}))
	for _, token := range []string{"", "=", "LTE6", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6", "NTo"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if s, ok := decodeShard(token); ok && token != "" {
			if again, ok := decodeShard(encodeShard(s)); !ok || again != s {
				t.Errorf("%q: %+v became %+v", token, s, again)
			}
		}
	})
}
