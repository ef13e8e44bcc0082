package outbox

import (
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
)

// outcome is what becomes of a batch.
type outcome struct {
	landed  []int64
	refused []refusal
	later   []int // indexes of rows that are to be enqueued again
}

// judge decides for each row of a batch by the error of its enqueue.
func judge(rows []row, errs []error) outcome {
	var o outcome
	for i, err := range errs {
		switch {
		case err == nil:
			o.landed = append(o.landed, rows[i].seq)
		case forGood(err):
			o.refused = append(o.refused, refusalOf(rows[i], err))
		default:
			o.later = append(o.later, i)
		}
	}
	return o
}

// forGood tells whether the same enqueue could never be taken. Whatever an operator can put
// right, such as a token or a topic that is missing, waits.
func forGood(err error) bool {
	return errors.Is(err, client.ErrInvalid) || errors.Is(err, client.ErrOutOfRange) || errors.Is(err, client.ErrExists)
}

// maxMessage bounds what is kept of why a row is refused, in bytes. What users wrote may be a part of it.
const maxMessage = 1_000

// together tells whether a batch may have failed as a whole because of one of its rows: nobody judged a task or a
// topic, and the server was reached.
func together(errs []error) bool {
	return !slices.ContainsFunc(errs, func(err error) bool {
		e := (*client.Error)(nil)
		if !errors.As(err, &e) || e.Reason != "" {
			return true
		}
		switch e.Code {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
			return true
		}
		return false
	})
}

func refusalOf(r row, err error) refusal {
	f := refusal{seq: r.seq, reason: "REFUSED", message: err.Error()}
	if e := (*client.Error)(nil); errors.As(err, &e) {
		f.message = e.Message
		if e.Reason != "" {
			f.reason = e.Reason
		}
	}
	f.message = strings.ToValidUTF8(strings.ReplaceAll(f.message[:min(len(f.message), maxMessage)], "\x00", ""), "")
	return f
}
