package pagetoken_test

import (
	"testing"

	"github.com/ddq-io/ddq/api/service/pagetoken"
)

func TestTokenIsOfItsListing(t *testing.T) {
	token := pagetoken.Make("topics:", "report")
	for _, c := range []struct {
		listing, token, want string
		ok                   bool
	}{
		{"topics:", token, "report", true},
		{"topics:", "", "", true}, // the first page
		{"shards:", token, "", false},
		{"topics:", "!", "", false},
	} {
		if got, ok := pagetoken.Position(c.listing, c.token); ok != c.ok || ok && got != c.want {
			t.Errorf("%q of %s: %q, %t", c.token, c.listing, got, ok)
		}
	}
}
