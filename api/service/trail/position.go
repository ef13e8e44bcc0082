package trail

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/api/service/pagetoken"
)

// listing names this one in page tokens.
const listing = "audit:"

// mostNodes bounds what a token may name.
const mostNodes = 1000

// position is where in the log of a node the next lines end; 0: nothing was read there yet.
type position struct {
	node string
	at   int64
}

// tokenOf is the page token of positions. No name of a node has a blank.
func tokenOf(all []position) string {
	var text strings.Builder
	for _, p := range all {
		fmt.Fprintf(&text, "%s %d ", p.node, p.at)
	}
	return pagetoken.Make(listing, strings.TrimSuffix(text.String(), " "))
}

// readPositions reads a page token. It is not that of the first page.
func readPositions(token string) (all []position, ok bool) {
	text, ok := pagetoken.Position(listing, token)
	parts := strings.Split(text, " ")
	if !ok || len(parts)%2 != 0 || len(parts) > 2*mostNodes {
		return nil, false
	}
	seen := make(map[string]bool)
	for i := 0; i < len(parts); i += 2 {
		at, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || at < 0 || parts[i] == "" || seen[parts[i]] {
			return nil, false
		}
		seen[parts[i]] = true
		all = append(all, position{parts[i], at})
	}
	return all, true
}
