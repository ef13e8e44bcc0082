// Package lateness has distributions of lateness.
package lateness

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lateness is kept in microseconds from 1 us to an hour, to three digits.
const (
	floor   = 1
	Ceiling = int64(time.Hour / time.Microsecond)
	digits  = 3
)

// New returns an empty distribution of lateness, in microseconds up to
// Ceiling.
func New() *hdrhistogram.Histogram {
	return hdrhistogram.New(floor, Ceiling, digits)
}

// Percentiles are those of a distribution, in milliseconds.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Of reads a distribution of microseconds.
func Of(h *hdrhistogram.Histogram) Percentiles {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Percentiles{
		P50: ms(h.ValueAtPercentile(50)), P90: ms(h.ValueAtPercentile(90)),
		P99: ms(h.ValueAtPercentile(99)), P999: ms(h.ValueAtPercentile(99.9)), Max: ms(h.Max()),
	}
}
