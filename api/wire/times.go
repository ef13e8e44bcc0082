package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const (
	maxDurationSeconds = 315_576_000_000     // of google.protobuf.Duration: 10,000 years
	maxTimestampMillis = 253_402_300_799_999 // the last of year 9999

	// maxDelay stands for every delay that time.Duration cannot express. It is
	// longer than any limit, so the use case refuses it.
	maxDelay = math.MaxInt64 / time.Millisecond * time.Millisecond
)

// Delay returns d in whole milliseconds, rounded up.
func Delay(d *durationpb.Duration, field string) (time.Duration, *problem.Error) {
	s, n := d.GetSeconds(), d.GetNanos()
	switch {
	case s < 0 || n < 0:
		return 0, Invalid("BAD_DELAY", field, "must not be negative or have negative nanos")
	case s > maxDurationSeconds:
		return 0, Invalid("BAD_DELAY", field, "must not be longer than 10,000 years")
	case n > 999_999_999:
		return 0, Invalid("BAD_DELAY", field, "nanos must be below 1,000,000,000")
	case s >= int64(maxDelay/time.Second):
		return maxDelay, nil
	}
	ms := s*1000 + (int64(n)+999_999)/1_000_000
	return time.Duration(ms) * time.Millisecond, nil
}

// Instant returns t in milliseconds, rounded up. It is after 1970, so never 0.
func Instant(t *timestamppb.Timestamp, field string) (store.Millis, *problem.Error) {
	s, n := t.GetSeconds(), t.GetNanos()
	switch {
	case n < 0 || n > 999_999_999:
		return 0, Invalid("BAD_TIME", field, "nanos must be between 0 and 999,999,999")
	case s < 0 || s == 0 && n == 0:
		return 0, Invalid("BAD_TIME", field, "must be after 1970-01-01T00:00:00Z")
	case s > maxTimestampMillis/1000:
		return 0, Invalid("BAD_TIME", field, "must not be after the year 9999")
	}
	ms := s*1000 + (int64(n)+999_999)/1_000_000
	if ms > maxTimestampMillis {
		return 0, Invalid("BAD_TIME", field, "must not be after the year 9999")
	}
	return store.Millis(ms), nil
}

// Span returns ms as a duration; what is a sensible one is for the use case to say.
func Span(ms int64, field string) (time.Duration, *problem.Error) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	if ms > most || ms < -most {
		return 0, Invalid("OUT_OF_RANGE_FIELD", field, "is not a sensible number of milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Stamp writes m into t, which lies in a slice of the reply, and returns it.
func Stamp(t *timestamppb.Timestamp, m store.Millis) *timestamppb.Timestamp {
	s, ms := int64(m)/1000, int64(m)%1000
	if ms < 0 { // before 1970: nanos count forward all the same
		s, ms = s-1, ms+1000
	}
	t.Seconds, t.Nanos = s, int32(ms)*1_000_000
	return t
}

// StampOrNil is a timestamp of its own, and nil for 0, which means never.
func StampOrNil(m store.Millis) *timestamppb.Timestamp {
	if m == 0 {
		return nil
	}
	return Stamp(new(timestamppb.Timestamp), m)
}

// Millis is the time of t to the millisecond; 0 for none.
func Millis(t *timestamppb.Timestamp) store.Millis {
	if t == nil {
		return 0
	}
	return store.Millis(t.AsTime().UnixMilli())
}

// UnixMillis is 0 for the zero time.
func UnixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
