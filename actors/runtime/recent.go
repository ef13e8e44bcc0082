package runtime

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// recent remembers what was used last, up to a bound in bytes. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	most, one int // bytes, about: of all that is remembered, and of one

	mu    sync.Mutex // guards what follows
	known *simplelru.LRU[K, sized[V]]
	bytes int
}

// sized is a value, and about how many bytes it has in memory.
type sized[V any] struct {
	value V
	bytes int
}

// newRecent returns a memory of nothing, for count entries at most.
func newRecent[K comparable, V any](count, most, one int) *recent[K, V] {
	r := &recent[K, V]{most: most, one: one}
	known, err := simplelru.NewLRU(count, func(_ K, v sized[V]) { r.bytes -= v.bytes })
	if err != nil {
		panic(err) // of a size that is not positive
	}
	r.known = known
	return r
}

// get returns the zero value when nothing is remembered.
func (r *recent[K, V]) get(key K) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, _ := r.known.Get(key)
	return v.value
}

// put remembers a value, and may forget others. One that is too large is not remembered.
func (r *recent[K, V]) put(key K, value V, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Remove(key)
	if bytes > r.one {
		return
	}
	r.known.Add(key, sized[V]{value, bytes})
	for r.bytes += bytes; r.bytes > r.most; {
		r.known.RemoveOldest()
	}
}

// forget forgets a value.
func (r *recent[K, V]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Remove(key)
}
