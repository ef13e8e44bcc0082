package token

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// readAgain is how long a file is taken to be as it was.
const readAgain = time.Second

// File returns a source of the token in a file. It is read again a second later, when there is a call, so whoever
// changes the file need not tell. Whoever puts another token there should do so before the former one ends. While
// the file cannot be read the token that was in it goes on.
func File(name string) *Source {
	fetch := func(context.Context) (Token, error) { return read(name) }
	return &Source{fetch: fetch, every: readAgain, turn: make(chan struct{}, 1)}
}

// OpenFile is File, and fails when there is no token in the file now.
func OpenFile(name string) (*Source, error) {
	if _, err := read(name); err != nil {
		return nil, err
	}
	return File(name), nil
}

func read(name string) (Token, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Token{}, err
	}
	words := strings.Fields(string(text))
	if len(words) != 1 {
		return Token{}, fmt.Errorf("there is no token in %s", name)
	}
	return Token{Text: words[0]}, nil
}
