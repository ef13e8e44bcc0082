package forecast

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Warning says that more tasks are due in a span of time than are let through in it.
type Warning struct {
	Time        time.Time     `json:"time"`
	Span        time.Duration `json:"span_ms"` // from Time on: a second, or the bucket of a forecast
	Due         int64         `json:"due"`     // tasks in it, as far as is known
	Limit       int64         `json:"limit"`   // that are not too many
	RateLimited bool          `json:"rate_limited,omitempty"`

	// The emptiest minute of the hour that begins at Time, and what is due in it. Zero in a
	// forecast.
	Emptiest    time.Time `json:"emptiest_time,omitempty"`
	EmptiestDue int64     `json:"emptiest_due,omitempty"`

	// What has the schedule go elsewhere: an expression in place of its first, and the slack
	// that reaches to the emptiest minute. Zero where that does not help.
	Cron  string        `json:"cron,omitempty"`
	Slack time.Duration `json:"slack_ms,omitempty"`
}

// MarshalJSON writes the form that `ddq forecast -o json` prints.
func (w Warning) MarshalJSON() ([]byte, error) { return fields.Write(w) }

// UnmarshalJSON reads it.
func (w *Warning) UnmarshalJSON(b []byte) error { return fields.Read(b, w) }

// Warnings are those of a message.
func Warnings(list []*ddqv1.DueWarning) (all []Warning) {
	for _, w := range list {
		all = append(all, Warning{
			Time: wire.Time(w.GetTime()), Span: wire.Duration(w.GetSpanMs()), Due: w.GetDue(), Limit: w.GetLimit(), RateLimited: w.GetRateLimited(),
			Emptiest: wire.Time(w.GetEmptiestTime()), EmptiestDue: w.GetEmptiestDue(), Cron: w.GetCron(), Slack: wire.Duration(w.GetSlackMs()),
		})
	}
	return all
}
