package fleet

import (
	"context"
	"sync"
	"time"
)

// AskAll asks all of some nodes at once, each in a goroutine, and returns their answers in the same order once
// it has them all. The context of ask ends after within, and ask has to return by then.
func AskAll[Q, A any](ctx context.Context, within time.Duration, all []Q, ask func(context.Context, Q) A) []A {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answers := make([]A, len(all))
	var wg sync.WaitGroup
	for i, q := range all {
		wg.Go(func() { answers[i] = ask(ctx, q) })
	}
	wg.Wait()
	return answers
}
