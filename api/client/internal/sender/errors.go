package sender

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrClosed is the cause of failures after Close.
var ErrClosed = errors.New("client is closed")

// failure is an error of this side, with the status that a server would have given it.
type failure struct {
	code    codes.Code
	message string
	cause   error
}

func (f *failure) Error() string              { return f.message }
func (f *failure) Unwrap() error              { return f.cause }
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.message) }

func closed() error { return &failure{codes.Canceled, ErrClosed.Error(), ErrClosed} }

// unavailable is a failure of the stream rather than of a request.
func unavailable(message string, cause error) error {
	return &failure{codes.Unavailable, message, cause}
}
