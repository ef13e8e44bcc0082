package ledger

// Timetable is what a schedule is put with. An occurrence is every EveryMS from FromMS up to
// ToMS, both in Unix milliseconds and both included, whatever words the schedule has for it.
type Timetable struct {
	FromMS  int64  `json:"from_ms"`
	ToMS    int64  `json:"to_ms"`
	EveryMS int64  `json:"every_ms"`
	Overlap string `json:"overlap"`
	CatchUp string `json:"catch_up"`
	GraceMS int64  `json:"grace_ms"`
}

// Names reports whether an instant is an occurrence.
func (t *Timetable) Names(at int64) bool {
	return at >= t.FromMS && at <= t.ToMS && (at-t.FromMS)%t.EveryMS == 0
}

// Next is the occurrence behind one; false: it is the last.
func (t *Timetable) Next(at int64) (int64, bool) { return at + t.EveryMS, at+t.EveryMS <= t.ToMS }

// Standing is how a schedule stands at the end.
type Standing struct {
	Made    int64            `json:"made"` // runs, by the timetable
	Skipped map[string]int64 `json:"skipped,omitempty"`
	Waiting int              `json:"waiting,omitempty"`
	Past    []Past           `json:"past,omitempty"` // the oldest first, then the runs that are open
	Cut     bool             `json:"cut,omitempty"`  // there may be more that it does not remember
}

// Past is a run, or skips of one reason in a row: then At is the last of them.
type Past struct {
	At      int64  `json:"at_ms"`
	ID      string `json:"id,omitempty"`
	Origin  string `json:"origin"`
	Outcome string `json:"outcome,omitempty"` // of a run that is over
	Skipped string `json:"skipped,omitempty"`
	Count   int64  `json:"count,omitempty"` // of skips
}
