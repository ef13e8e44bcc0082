package call

import (
	"context"

	"google.golang.org/grpc"
)

// Safety says which failures of a call may be repeated.
type Safety bool

// What may be repeated.
const (
	Once       Safety = false // only refusals that say when to come back
	Idempotent Safety = true  // also lost connections and unknown outcomes
)

// Do makes a call, and repeats it while that is safe and time is left.
type Do func(ctx context.Context, s Safety, op func(context.Context) error) error

// Answer makes a call, and returns what it answers: nil when it failed.
func Answer[Q, A any](ctx context.Context, do Do, s Safety, rpc func(context.Context, Q, ...grpc.CallOption) (*A, error), q Q) (a *A, err error) {
	err = do(ctx, s, func(ctx context.Context) error {
		a, err = rpc(ctx, q)
		return err
	})
	return a, err
}
