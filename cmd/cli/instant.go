package cli

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/cmd/node"
)

// instant is a moment on the command line: RFC 3339, or how long ago.
type instant struct {
	at  time.Time
	ago time.Duration
	set bool
}

func (i *instant) Type() string { return "time" }

func (i *instant) String() string {
	switch {
	case !i.set:
		return ""
	case i.at.IsZero():
		return i.ago.String()
	}
	return i.at.Format(time.RFC3339Nano)
}

func (i *instant) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*i = instant{at: at, set: true}
		return nil
	}
	ago, err := node.ParseDuration(text)
	if err != nil || ago < 0 {
		return fmt.Errorf("want RFC 3339 such as 2030-01-31T15:04:05Z, or how long ago such as 90m")
	}
	*i = instant{ago: ago, set: true}
	return nil
}

// time returns the zero time when the flag was not given.
func (i *instant) time(now time.Time) time.Time {
	if i.set && i.at.IsZero() {
		return now.Add(-i.ago)
	}
	return i.at
}
