package workflows

import (
	"strconv"

	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/store/gather"
)

// Spread works on the workflows of a request, many at a time, those of one id in order. What they
// read and commit of one shard goes to the store together. An empty id is one of its own.
func Spread(s *Workflows, ids []string, work func(*Workflows, int)) {
	together := *s
	if s.kept != nil {
		together.kept = &access.Access{Store: gather.New(s.node.Cells()), Node: s.kept.Node}
	}
	key := func(i int) string {
		if ids[i] == "" {
			return strconv.Itoa(i)
		}
		return ids[i]
	}
	gather.Spread(len(ids), key, func(i int) { work(&together, i) })
}
