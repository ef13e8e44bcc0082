package service

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/scope"
)

// Empty says what is in the namespace of a call, by the first that is found; nil when nothing is.
func (s *Service) Empty(ctx context.Context) error {
	topics, _, err := s.Topics.List(ctx, 1, "")
	if err != nil {
		return err
	}
	if len(topics) > 0 {
		return inNamespace(ctx, "topic", topics[0].Name)
	}
	if s.Audiences == nil {
		return nil
	}
	for token, more := "", true; more; more = token != "" {
		page, next, err := s.Audiences.ListAudiences(ctx, 1, token)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			return inNamespace(ctx, "audience", page[0].Name)
		}
		token = next
	}
	return nil
}

func inNamespace(ctx context.Context, what, name string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "NAMESPACE_NOT_EMPTY", Field: "name",
		Message: fmt.Sprintf("namespace %q has %s %q", scope.Of(ctx), what, name)}
}
