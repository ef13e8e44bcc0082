package session

import (
	"fmt"
	"strings"
)

// Words are those of values, for texts of a flag.
func Words[T fmt.Stringer](all []T) string {
	words := make([]string, len(all))
	for i, v := range all {
		words[i] = v.String()
	}
	return strings.Join(words, ", ")
}

// OneOf returns the value that the word of a flag stands for.
func OneOf[T fmt.Stringer](flag, word string, all []T) (found T, err error) {
	for _, v := range all {
		if v.String() == word {
			return v, nil
		}
	}
	return found, Usagef("--%s is one of %s, not %q", flag, Words(all), word)
}
