package session

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/cmd/node"
)

// Instant is a moment on the command line: RFC 3339, or how long ago.
type Instant struct {
	at    time.Time
	ago   time.Duration
	Given bool
}

// Type is what help calls the value.
func (i *Instant) Type() string { return "time" }

func (i *Instant) String() string {
	switch {
	case !i.Given:
		return ""
	case i.at.IsZero():
		return i.ago.String()
	}
	return i.at.Format(time.RFC3339Nano)
}

// Set reads either form.
func (i *Instant) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*i = Instant{at: at, Given: true}
		return nil
	}
	ago, err := node.ParseDuration(text)
	if err != nil || ago < 0 {
		return fmt.Errorf("want RFC 3339 such as 2030-01-31T15:04:05Z, or how long ago such as 90m")
	}
	*i = Instant{ago: ago, Given: true}
	return nil
}

// Time returns the zero time when the flag was not given.
func (i *Instant) Time(now time.Time) time.Time {
	if i.Given && i.at.IsZero() {
		return now.Add(-i.ago)
	}
	return i.at
}

// ParseTime reads a flag with an instant; the zero time when it was not given.
func ParseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, Usagef("--%s: want RFC 3339 such as 2030-01-31T15:04:05.250Z, not %q", flag, text)
	}
	return at, nil
}

// Millis is a duration of the wire.
func Millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
