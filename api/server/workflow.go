package server

import (
	"context"
	"log/slog"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/server/workflows"
)

// workflowEdge is what WorkflowService needs of this server.
func workflowEdge(life *lifetime, log *slog.Logger) workflows.Edge {
	return workflows.Edge{
		MayEnqueue: func(ctx context.Context, topic string) *problem.Error {
			may := guard.Enqueue{Principal: auth.From(ctx)}
			return may.Check(topic)
		},
		Poll:      life.poll,
		PollError: life.pollError,
		ItemError: func(err error) *ddqv1.Error { return status.Item(log, status.Classify(err)) },
	}
}
