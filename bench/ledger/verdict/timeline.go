package verdict

import (
	"fmt"
	"strings"
	"time"
)

// Lines is the timeline, a line an event, in milliseconds from the first.
func (o Offence) Lines() string {
	var b strings.Builder
	for _, e := range o.Timeline {
		fmt.Fprintf(&b, "  %12.3f  %-10s %v\n", milliseconds(time.Duration(e.Mono-o.Timeline[0].Mono)), e.Client, e)
	}
	return b.String()
}
