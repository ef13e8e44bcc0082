package actors

import "context"

// awaitAll waits until all of waits are closed, or for the end of ctx.
func awaitAll(ctx context.Context, waits []chan struct{}) {
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			return
		}
	}
}
