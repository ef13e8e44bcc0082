package wire

import (
	"math"
	"math/big"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/store"
)

func TestDelaysAreRoundedUpAndCheckedForForm(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds int64
		nanos   int32
		want    time.Duration
		bad     bool
	}{
		{"zero", 0, 0, 0, false},
		{"one nanosecond is a millisecond", 0, 1, time.Millisecond, false},
		{"whole millisecond stays", 0, 5_000_000, 5 * time.Millisecond, false},
		{"a nanosecond over goes up", 0, 5_000_001, 6 * time.Millisecond, false},
		{"a nanosecond under goes up", 0, 4_999_999, 5 * time.Millisecond, false},
		{"into the next second", 1, 999_999_999, 2 * time.Second, false},
		{"beyond time.Duration is the longest", 300 * 365 * 24 * 3600, 0, maxDelay, false},
		{"the wire's longest", maxDurationSeconds, 0, maxDelay, false},
		{"negative seconds", -1, 0, 0, true},
		{"negative nanos", 0, -1, 0, true},
		{"signs differ", 1, -1, 0, true},
		{"nanos over a second", 0, 1_000_000_000, 0, true},
		{"over the wire's longest", maxDurationSeconds + 1, 0, 0, true},
		{"overflows milliseconds", math.MaxInt64, 0, 0, true},
		{"least", math.MinInt64, math.MinInt32, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, e := Delay(&durationpb.Duration{Seconds: c.seconds, Nanos: c.nanos}, "delay")
			if c.bad {
				if e == nil || e.Reason != "BAD_DELAY" || e.Field != "delay" {
					t.Fatalf("got %v, %+v, want BAD_DELAY of delay", got, e)
				}
				return
			}
			if e != nil || got != c.want {
				t.Fatalf("got %v, %v, want %v", got, e, c.want)
			}
		})
	}
}

func TestInstantsAreRoundedUpAndCheckedForForm(t *testing.T) {
	const last = maxTimestampMillis / 1000
	for _, c := range []struct {
		name    string
		seconds int64
		nanos   int32
		want    store.Millis
		bad     bool
	}{
		{"whole millisecond stays", 1_700_000_000, 7_000_000, 1_700_000_000_007, false},
		{"a nanosecond over goes up", 1_700_000_000, 7_000_001, 1_700_000_000_008, false},
		{"into the next second", 1_700_000_000, 999_999_999, 1_700_000_001_000, false},
		{"first nanosecond", 0, 1, 1, false},
		{"last millisecond", last, 999_000_000, maxTimestampMillis, false},
		{"over the last millisecond", last, 999_000_001, 0, true},
		{"the epoch, which is a forgotten field", 0, 0, 0, true},
		{"before the epoch", -1, 999_999_999, 0, true},
		{"negative nanos", 5, -1, 0, true},
		{"nanos over a second", 5, 1_000_000_000, 0, true},
		{"year 10000", last + 1, 0, 0, true},
		{"overflows milliseconds", math.MaxInt64, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, e := Instant(&timestamppb.Timestamp{Seconds: c.seconds, Nanos: c.nanos}, "execute_time")
			if c.bad {
				if e == nil || e.Reason != "BAD_TIME" || e.Field != "execute_time" {
					t.Fatalf("got %v, %+v, want BAD_TIME of execute_time", got, e)
				}
				return
			}
			if e != nil || got != c.want {
				t.Fatalf("got %v, %v, want %v", got, e, c.want)
			}
		})
	}
}

func TestSpansDoNotOverflow(t *testing.T) {
	for _, ms := range []int64{0, 1, -1, 30_000, math.MaxInt64 / 1_000_000, -math.MaxInt64 / 1_000_000} {
		got, e := Span(ms, "wait_ms")
		if e != nil || got.Milliseconds() != ms {
			t.Errorf("%d: got %v, %v", ms, got, e)
		}
	}
	for _, ms := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64/1_000_000 + 1} {
		if got, e := Span(ms, "wait_ms"); e == nil || e.Reason != "OUT_OF_RANGE_FIELD" || e.Field != "wait_ms" {
			t.Errorf("%d: got %v, %v, want OUT_OF_RANGE_FIELD", ms, got, e)
		}
	}
}

func TestStampsKeepTheMillisecond(t *testing.T) {
	for _, m := range []store.Millis{1, 999, 1000, 1_700_000_000_007, -1, -1000, maxTimestampMillis} {
		s := Stamp(new(timestamppb.Timestamp), m)
		if err := s.CheckValid(); err != nil {
			t.Errorf("%d: %v", m, err)
		}
		if got := s.AsTime().UnixMilli(); got != int64(m) {
			t.Errorf("%d came back as %d", m, got)
		}
	}
	if StampOrNil(0) != nil {
		t.Error("0 means never, and got a time")
	}
}

// FuzzDelayOf compares with arithmetic that cannot overflow: an accepted delay
// is never shorter than asked for, and less than a millisecond longer.
func FuzzDelayOf(f *testing.F) {
	f.Add(int64(0), int32(1))
	f.Add(int64(9_223_372_036), int32(854_775_807))
	f.Add(int64(math.MaxInt64), int32(999_999_999))
	f.Fuzz(func(t *testing.T, s int64, n int32) {
		d := &durationpb.Duration{Seconds: s, Nanos: n}
		got, e := Delay(d, "delay")
		valid := d.CheckValid() == nil && s >= 0 && n >= 0
		if valid != (e == nil) {
			t.Fatalf("valid %v, got %v, %v", valid, got, e)
		}
		if e == nil && got != maxDelay {
			requireCeil(t, s, n, got.Nanoseconds(), 1_000_000)
		}
	})
}

func FuzzInstantOf(f *testing.F) {
	f.Add(int64(0), int32(1))
	f.Add(int64(maxTimestampMillis/1000), int32(999_999_999))
	f.Add(int64(math.MaxInt64), int32(0))
	f.Fuzz(func(t *testing.T, s int64, n int32) {
		ts := &timestamppb.Timestamp{Seconds: s, Nanos: n}
		got, e := Instant(ts, "execute_time")
		if e != nil {
			if ts.CheckValid() == nil && ts.AsTime().UnixNano() > 0 && s < maxTimestampMillis/1000 {
				t.Fatalf("%v refused: %v", ts.AsTime(), e)
			}
			return
		}
		if ts.CheckValid() != nil || got <= 0 {
			t.Fatalf("accepted %v as %d", ts, got)
		}
		requireCeil(t, s, n, int64(got), 1)
		if Stamp(new(timestamppb.Timestamp), got).CheckValid() != nil {
			t.Fatalf("%d cannot be sent back", got)
		}
	})
}

// requireCeil checks that got/perMs is s seconds and n nanoseconds in
// milliseconds, rounded up.
func requireCeil(t *testing.T, s int64, n int32, got, perMs int64) {
	t.Helper()
	nanos := new(big.Int).Mul(big.NewInt(s), big.NewInt(1_000_000_000))
	nanos.Add(nanos, big.NewInt(int64(n)))
	over := new(big.Int).Mul(big.NewInt(got/perMs), big.NewInt(1_000_000))
	over.Sub(over, nanos)
	if over.Sign() < 0 || over.Cmp(big.NewInt(1_000_000)) >= 0 {
		t.Fatalf("%d s %d ns became %d, which is %v ns more", s, n, got, over)
	}
}
