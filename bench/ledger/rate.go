package ledger

// Rate is how fast tasks are delivered: Count in a period on average and Burst at once,
// or in a window, which is any period, never more than Count.
type Rate struct {
	Count    int   `json:"count"`
	PeriodMS int64 `json:"period_ms"`
	Burst    int   `json:"burst,omitempty"`
	Window   bool  `json:"window,omitempty"`
}

// Tokens of a bucket may be used half a second late, and times are cut to milliseconds.
const (
	tokenLife = 500
	cut       = 1
)

// Ahead is how far the n-th hold, at a moment in ms, is ahead of the rate of a bucket.
func (r *Rate) Ahead(n int, at int64) int64 { return int64(n)*r.PeriodMS - int64(r.Count)*at }

// Exceeded reports whether n holds in that many ms are too many.
func (r *Rate) Exceeded(n int, took int64) bool {
	if r.Window {
		return n > r.Count && took < r.PeriodMS-cut
	}
	return int64(n-max(1, r.Burst))*r.PeriodMS > int64(r.Count)*(took+tokenLife+cut)
}
