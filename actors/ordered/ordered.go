package ordered

import (
	"iter"
	"slices"
)

// All yields the entries of a map by key. What a node does next never depends on
// the order of a map, so that a simulation can have it again. The map may shrink
// meanwhile.
func All[K comparable, V any](m map[K]V, compare func(a, b K) int) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if len(m) < 2 {
			for k, v := range m {
				yield(k, v)
			}
			return
		}
		keys := make([]K, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, compare)
		for _, k := range keys {
			if v, there := m[k]; there && !yield(k, v) {
				return
			}
		}
	}
}
