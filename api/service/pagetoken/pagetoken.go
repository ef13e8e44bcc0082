// Package pagetoken makes and reads the tokens of the pages of listings. A token names its
// listing: that of one is refused by the others, which would begin somewhere.
package pagetoken

import (
	"encoding/base64"
	"strings"
)

// Make makes the token of the page behind a position of a listing.
func Make(listing, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(listing + position))
}

// Position returns the position of a token, which is empty for the first page.
func Position(listing, token string) (position string, ok bool) {
	if token == "" {
		return "", true
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(b), listing)
}
