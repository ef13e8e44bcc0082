package watches

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// logs reads the logs of changes that topics keep.
type logs struct {
	node  *actors.Node
	store store.Log
}

// changes reads logs, and once more after an answer that was lost.
func (s *logs) changes(ctx context.Context, reads []store.LogRead) (pages []store.LogPage, err error) {
	if len(reads) == 0 {
		return nil, nil
	}
	for range 2 {
		if pages, err = s.store.Changes(ctx, reads); !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	return pages, err
}

func errNotWatched(topic string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "NOT_WATCHED", Field: "topic",
		Message: "topic " + topic + " keeps no log of changes: set its policy's watch_retention_ms (ddq topic set " + topic + " --watch-retention 1h)"}
}

func errCursorExpired() *problem.Error {
	return &problem.Error{Kind: problem.OutOfRange, Reason: "CURSOR_EXPIRED", Field: "cursor",
		Message: "changes behind the cursor are not kept any more: begin anew, and look at the tasks themselves"}
}
