package call

import "iter"

// PageSize is how much a list asks for at a time.
const PageSize = 200

// Pages walks through the pages that fetch returns, from token "" on. The
// sequence ends with the first error.
func Pages[T any](fetch func(token string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		token := ""
		for {
			items, next, err := fetch(token)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			token = next
		}
	}
}

// List reads what an answer lists.
func List[W, T any](list []W, from func(W) T) (all []T) {
	for _, w := range list {
		all = append(all, from(w))
	}
	return all
}
