// Package requestid names requests: an id finds what a caller was answered in the log and in the
// audit log. Requests over HTTP have one each. A call of gRPC gets one when it fails, so that
// calls that succeed pay nothing; a caller may bring its own.
package requestid

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/api/auth"
)

// Key is the metadata of a call, and of the trailer of one that failed, that has its id.
const Key = "ddq-request-id"

// New returns a new id.
func New() string {
	id, err := uuid.NewV7()
	if err != nil { // the system has no random numbers
		panic(err)
	}
	return id.String()
}

// Read returns an id that a caller sent, in lower case; empty when it is none.
func Read(text string) string {
	if len(text) != 36 {
		return ""
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return ""
	}
	return id.String()
}

// Given is the id that a call came with: that of the HTTP request which it is part of, or the
// caller's own. It is empty when there is none.
func Given(ctx context.Context) string {
	if from, known := auth.OriginOf(ctx); known && from.Request != "" {
		return from.Request
	}
	if sent := metadata.ValueFromIncomingContext(ctx, Key); len(sent) > 0 {
		return Read(sent[0])
	}
	return ""
}

// Name returns the id of a call that failed, and the error with that id. One that has an id
// already keeps it.
func Name(ctx context.Context, err error) (id string, named error) {
	if id := of(err); id != "" {
		return id, err
	}
	if id = Given(ctx); id == "" {
		id = New()
	}
	return id, &failure{err, id}
}

// Split returns the id of a call that failed, and the error as it was before it got one.
func Split(ctx context.Context, err error) (id string, bare error) {
	id, named := Name(ctx, err)
	if f, ok := named.(*failure); ok { //nolint:errorlint // what is around a failure stays
		return id, f.error
	}
	return id, err
}

// Edit changes an error. One with an id keeps it.
func Edit(err error, edit func(error) error) error {
	if f, ok := err.(*failure); ok { //nolint:errorlint // what is around a failure is edited with it
		return &failure{edit(f.error), f.id}
	}
	return edit(err)
}

// failure is an error with the id of its call.
type failure struct {
	error
	id string
}

func (f *failure) Unwrap() error { return f.error }

// of is the id that an error has; empty for none.
func of(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.id
	}
	return ""
}
