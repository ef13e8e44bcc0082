package overview

import (
	"context"
	"time"
)

// Watch passes on an overview each second, until ctx ends or pass fails. Watchers of the same share
// what is read. One that takes its time misses some.
func (o *Overviews) Watch(ctx context.Context, q Query, pass func(*Overview) error) error {
	beat := time.NewTicker(freshFor)
	defer beat.Stop()
	var last *Overview
	for {
		v, err := o.Get(ctx, q)
		if err != nil {
			return err
		}
		if v != last { // another watcher's may be as old as the beat
			if err := pass(v); err != nil {
				return err
			}
			last = v
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
