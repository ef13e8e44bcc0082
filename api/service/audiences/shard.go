package audiences

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/audience/access"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// change changes a shard when it is its turn: see access.Access.
func (s *Audiences) change(ctx context.Context, a *audience.Audience, n int, do func(*audience.Directory) (store.Commit, error)) error {
	done, err := s.turns.take(ctx, a.Shard(n))
	if err != nil {
		return problem.AsError(err)
	}
	defer done()
	return asProblem(a.Name, s.Change(ctx, a, n, do))
}

// asProblem is what went wrong with an audience.
func asProblem(name string, err error) error {
	switch {
	case errors.Is(err, access.ErrGone):
		return noAudience(name)
	case errors.Is(err, access.ErrContended):
		return contended()
	}
	return problem.AsError(err)
}

// atOnce is how many shards one call works on at a time.
const atOnce = 16

// each calls do for shards of an audience, several at a time, and returns the first error,
// after which no more are begun.
func each(ctx context.Context, shards []int, do func(context.Context, int) error) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, n := range shards {
		if within.Err() != nil {
			break
		}
		g.Go(func() error { return do(within, n) })
	}
	if err := g.Wait(); err != nil {
		return problem.AsError(err)
	}
	return problem.AsError(ctx.Err())
}

// all are the numbers of the shards of an audience.
func all(a *audience.Audience) []int {
	shards := make([]int, a.Shards)
	for n := range shards {
		shards[n] = n
	}
	return shards
}
