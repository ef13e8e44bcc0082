package workers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/service/pagetoken"
)

// listing names this one in page tokens.
const listing = "workers:"

// position is behind a worker of a node. The zero one is before all.
type position struct {
	node string
	fleet.WorkerKey
}

// token is the page token of a position. No name of a node or topic has a blank.
func (p position) token() string {
	return pagetoken.Make(listing, fmt.Sprintf("%s %s %d", p.node, p.Topic, p.Number))
}

// readPosition reads the page token of a listing of a topic, or of all when it is empty.
func readPosition(topic, token string) (p position, ok bool) {
	text, ok := pagetoken.Position(listing, token)
	if !ok || text == "" {
		return p, ok
	}
	parts := strings.Split(text, " ")
	if len(parts) != 3 || topic != "" && parts[1] != topic {
		return p, false
	}
	number, err := strconv.ParseInt(parts[2], 10, 64)
	return position{parts[0], fleet.WorkerKey{Topic: parts[1], Number: number}}, err == nil
}
