package client

import "iter"

// pageSize is how much a list asks for at a time.
const pageSize = 200

// pages walks through the pages that fetch returns, from token "" on. The
// sequence ends with the first error.
func pages[T any](fetch func(token string) (items []T, next string, err error)) iter.Seq2[T, error] {
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

// listOf reads what an answer lists.
func listOf[W, T any](list []W, from func(W) T) (all []T) {
	for _, w := range list {
		all = append(all, from(w))
	}
	return all
}
