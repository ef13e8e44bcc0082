package ledger

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lateness is kept in microseconds from 1 us to an hour, to three digits.
const (
	latenessFloor   = 1
	LatenessCeiling = int64(time.Hour / time.Microsecond)
	latenessDigits  = 3
)

// NewHistogram returns an empty distribution of lateness, in microseconds up to
// LatenessCeiling.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(latenessFloor, LatenessCeiling, latenessDigits)
}

// Percentile is a distribution in milliseconds.
type Percentile struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Percentiles reads a distribution of microseconds.
func Percentiles(h *hdrhistogram.Histogram) Percentile {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Percentile{
		P50: ms(h.ValueAtPercentile(50)), P90: ms(h.ValueAtPercentile(90)),
		P99: ms(h.ValueAtPercentile(99)), P999: ms(h.ValueAtPercentile(99.9)), Max: ms(h.Max()),
	}
}

// milliseconds is d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
