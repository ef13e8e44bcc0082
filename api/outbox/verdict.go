package outbox

import (
	"errors"

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

func refusalOf(r row, err error) refusal {
	f := refusal{seq: r.seq, reason: "REFUSED", message: err.Error()}
	if e := (*client.Error)(nil); errors.As(err, &e) {
		f.message = e.Message
		if e.Reason != "" {
			f.reason = e.Reason
		}
	}
	return f
}
