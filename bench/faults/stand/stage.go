package stand

import (
	"fmt"
	"sync"
)

// stage stands in for a test, so that the Redis setups of package redistest can be
// used outside of one: what they would fail with becomes an error, see try.
type stage struct {
	mu    sync.Mutex
	clean []func() // last one first; guarded by mu
}

// stageError is what Fatal panics with, and try recovers.
type stageError struct{ error }

// Helper does nothing.
func (*stage) Helper() {}

// Cleanup keeps a function for close.
func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clean = append(s.clean, f)
}

// Fatal ends what try runs.
func (*stage) Fatal(args ...any) { panic(stageError{fmt.Errorf("%s", fmt.Sprint(args...))}) }

// Fatalf ends what try runs.
func (*stage) Fatalf(format string, args ...any) { panic(stageError{fmt.Errorf(format, args...)}) }

// close undoes everything. It may be called more than once.
func (s *stage) close() error {
	return s.Try(func() {
		for {
			s.mu.Lock()
			n := len(s.clean)
			if n == 0 {
				s.mu.Unlock()
				return
			}
			f := s.clean[n-1]
			s.clean = s.clean[:n-1]
			s.mu.Unlock()
			f()
		}
	})
}

// Try runs do and returns what it failed with.
func (s *stage) Try(do func()) (err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case stageError:
			err = failure.error
		default:
			panic(failure)
		}
	}()
	do()
	return nil
}
