package audience

import (
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// QuietPolicy is what becomes of a task that is due in quiet hours.
type QuietPolicy uint8

const (
	Defer  QuietPolicy = iota + 1 // it is due when they end
	Skip                          // it is not made
	Ignore                        // it is made as it is
)

// Verdict is what becomes of a recipient in a run.
type Verdict uint8

const (
	Taken    Verdict = iota + 1 // gets a task
	Deferred                    // gets one after the quiet hours
	Disabled
	OptedOut // of the kind
	Silent   // the task would be due in quiet hours
	NoTime   // the wall time is one of a day that the zone does not have
	Verdicts // one more than the last
)

var verdictNames = [...]string{Taken: "made", Deferred: "deferred", Disabled: "disabled", OptedOut: "opted_out", Silent: "quiet", NoTime: "no_time"}

// String is the verdict as metrics name it.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "unknown"
}

// Taker is what a run asks for of each recipient.
type Taker struct {
	Kind  Kind
	Quiet QuietPolicy
}

// Kind is what a task is about, of which recipients choose what they get.
type Kind struct {
	Number int  // among the kinds of the audience
	Off    bool // only those get it who said so
	None   bool // the run has no kind: all get it
}

// Judge says whether a recipient gets a task that is due at a time, and when. Zone is
// that of the recipient.
func (t Taker) Judge(p *Preferences, due store.Millis, zone *time.Location) (Verdict, store.Millis) {
	switch {
	case p.Disabled:
		return Disabled, 0
	case !t.Kind.wanted(p):
		return OptedOut, 0
	case p.Quiet.From == p.Quiet.To || t.Quiet == Ignore:
		return Taken, due
	}
	wall := timetable.Wall(due.Time(), zone)
	if !p.Quiet.covers(uint16(wall.Hour()*60 + wall.Minute())) {
		return Taken, due
	}
	if t.Quiet == Skip {
		return Silent, 0
	}
	until := p.Quiet.end(wall)
	end, _ := timetable.Instant(until, zone)
	if at := store.Millis(end.UnixMilli()); at > due {
		return Deferred, at
	}
	return Deferred, due.Add(until.Sub(wall)) // the hour comes twice, and this is the second time
}

func (k Kind) wanted(p *Preferences) bool {
	bit := uint64(1) << k.Number
	switch {
	case k.None:
		return true
	case k.Off:
		return p.On&bit != 0
	}
	return p.Off&bit == 0
}
