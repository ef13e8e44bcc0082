package service

import (
	"encoding/base64"
	"strings"
)

// Listings whose page tokens have a position in common forms. A token of one is refused
// by the others, which would begin somewhere.
const (
	topicsPage = "topics:"
	shardsPage = "shards:"
)

// pageToken makes the token of the page behind a position.
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
