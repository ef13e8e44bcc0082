package server

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

func (q *queue) AcquireTokens(ctx context.Context, r *ddqv1.AcquireTokensRequest) (*ddqv1.AcquireTokensResponse, error) {
	wait, e := wire.Span(r.MaxWaitMs, "max_wait_ms")
	if e != nil {
		return nil, e
	}
	got, err := q.service.Topics.AcquireTokens(ctx, r.Topic, r.Key, int(r.Tokens), wait)
	if err != nil {
		return nil, err
	}
	return &ddqv1.AcquireTokensResponse{Granted: got.Granted, WaitMs: int64((got.Wait + time.Millisecond - 1) / time.Millisecond)}, nil
}
