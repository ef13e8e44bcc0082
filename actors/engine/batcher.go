package engine

// Batcher queues items for one kind of store call and cuts batches: at most `most`
// calls fly at a time, and what arrives meanwhile makes the next batch.
type Batcher[T any] struct {
	Waiting  []T
	InFlight int
	Most     int
	Limit    int          // items in a batch
	Size     func(*T) int // bytes of an item; nil when they do not count
}

const (
	batchBytes = 4 << 20
)

// Next returns the next batch, or nil when none may start.
func (l *Batcher[T]) Next() []T {
	if len(l.Waiting) == 0 || l.InFlight >= l.Most {
		return nil
	}
	n := l.cut()
	batch := l.Waiting[:n:n]
	l.Waiting = l.Waiting[n:]
	if len(l.Waiting) == 0 {
		l.Waiting = nil // the batch owns the array now
	}
	l.InFlight++
	return batch
}

func (l *Batcher[T]) cut() int {
	n := min(len(l.Waiting), l.Limit)
	if l.Size == nil {
		return n
	}
	bytes := 0
	for i := range n {
		if bytes += l.Size(&l.Waiting[i]); bytes > batchBytes && i > 0 {
			return i
		}
	}
	return n
}

// Done counts a batch out.
func (l *Batcher[T]) Done() { l.InFlight-- }

// Idle reports whether nothing waits and no batch is in flight.
func (l *Batcher[T]) Idle() bool { return l.InFlight == 0 && len(l.Waiting) == 0 }
