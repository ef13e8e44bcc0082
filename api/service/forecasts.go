package service

import (
	"context"

	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/forecasts"
)

// recipientsOf says how many recipients audiences have; nil where there are none.
func recipientsOf(users *audiences.Audiences) forecasts.Recipients {
	if users == nil {
		return nil
	}
	return func(ctx context.Context, name string) (int64, error) {
		status, err := users.Describe(ctx, name)
		return status.Recipients, err
	}
}
