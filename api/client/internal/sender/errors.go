package sender

import (
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client/internal/conn"
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

// Lost is of what was sent and not answered: nobody knows whether it was done. Repeating it
// under its ids finds out.
type Lost struct {
	failure
	Of      Answer // that says why it is lost: what ended the stream, or what became of the repeat
	Refused bool   // the repeat was answered, which did not tell
	alone   bool   // the repeat is a call of its own: something of the frame may be what broke the stream
}

// inDoubt is the error of the requests of a stream that ended with err without an answer to them.
func inDoubt(err error) error {
	l := &Lost{Of: Answer{Err: err}, failure: failure{codes.Unknown, "no answer came: " + status.Convert(err).Message(), err}}
	switch {
	case errors.Is(err, io.EOF):
		l.message = "no answer came: the server closed the stream"
	case status.Code(err) == codes.Canceled: // not by the caller, whose own context says so
		l.message = "no answer came: the stream was closed"
	default:
		l.alone = status.Code(err) != codes.Unavailable
	}
	return l
}

// refusal reports whether a server said with err that it did not begin with a call. A call of which
// nothing has come may have been begun, too, unless the server says that it refused it.
func refusal(err error) bool {
	var said *conn.Failure
	if !errors.As(err, &said) {
		return false
	}
	switch status.Code(err) {
	case codes.Unknown, codes.Internal, codes.Canceled, codes.DeadlineExceeded:
		return false
	}
	return true
}

// suspect reports whether the request that failed with err may be why others failed with it.
func suspect(err error, again bool) bool {
	var l *Lost
	return errors.As(err, &l) && (l.alone || again)
}
