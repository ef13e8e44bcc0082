package session

import (
	"context"
	"time"
)

// Until looks again and again, with a pause in between, until look says that it is done, fails, or ctx ends.
func Until(ctx context.Context, pause time.Duration, look func() (done bool, err error)) error {
	every := time.NewTicker(pause)
	defer every.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
