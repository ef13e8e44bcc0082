package audiences

import (
	"encoding/base64"
	"strings"
)

// pageToken makes the token of the page behind a position of a listing. The token of one
// listing is refused by the others.
func pageToken(listing, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(listing + position))
}

// pagePosition returns the position of a token, which is empty for the first page.
func pagePosition(listing, token string) (position string, ok bool) {
	if token == "" {
		return "", true
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(b), listing)
}
