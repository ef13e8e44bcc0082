package engine

import (
	"sync"
	"testing"
)

// TestPoolTakesLateComers has functions arrive while the pool closes, as streams
// that end send to their actors while the System stops.
func TestPoolTakesLateComers(t *testing.T) {
	for range 100 {
		p := NewPool()
		var late sync.WaitGroup
		for range 4 {
			late.Go(func() {
				for range 10 {
					p.Run(func() {})
				}
			})
		}
		p.Close()
		late.Wait()
	}
}
