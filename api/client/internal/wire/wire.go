// Package wire turns plain values into those of the wire, and back: zero values of Go are
// absent there.
package wire

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Time returns the zero time for an unset timestamp.
func Time(ts *timestamppb.Timestamp) time.Time {
	if ts == nil {
		return time.Time{}
	}
	return ts.AsTime()
}

// Stamp is unset for the zero time.
func Stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// UnixMillis is 0 for the zero time, and rounds up as due times do.
func UnixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

// UnixTime is the zero time for 0.
func UnixTime(ms int64) (t time.Time) {
	if ms != 0 {
		t = time.UnixMilli(ms).UTC()
	}
	return t
}

// Millis rounds up, away from "none".
func Millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// MillisPtr is Millis of a duration that may be unset.
func MillisPtr(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(Millis(*d))
}

// Duration is that of so many milliseconds.
func Duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// Span returns 0 for an unset duration.
func Span(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}

// Int32 clamps, so that a number out of range stays out of range.
func Int32(n int) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, n)))
}

// Int32Ptr is Int32 of a number that may be unset.
func Int32Ptr(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(Int32(*n))
}

// Int64Ptr is a number that may be unset.
func Int64Ptr(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

// Word is the name of an enum's value in lower case and without its prefix, and "unknown" for
// the zero one.
func Word(name, prefix string) string { return WordOr(name, prefix, "unknown") }

// WordOr is Word with another word for the zero value.
func WordOr(name, prefix, zero string) string {
	name = strings.ToLower(strings.TrimPrefix(name, prefix))
	if name == "unspecified" {
		return zero
	}
	return name
}

// Each is what f makes of each item of a list, nil of an empty one.
func Each[From, To any](list []From, f func(From) To) []To {
	if len(list) == 0 {
		return nil
	}
	all := make([]To, len(list))
	for i := range list {
		all[i] = f(list[i])
	}
	return all
}

// Attributes are sorted, so that the same task encodes to the same request.
func Attributes(m map[string]string) []*ddqv1.Attribute {
	list := make([]*ddqv1.Attribute, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, &ddqv1.Attribute{Key: key, Value: m[key]})
	}
	return list
}

// AttributesFrom returns nil where there are none.
func AttributesFrom(list []*ddqv1.Attribute) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]string, len(list))
	for _, a := range list {
		m[a.GetKey()] = a.GetValue()
	}
	return m
}

// NotUTF8 returns a field of text that is not UTF-8, which no message can have, with the
// reason that the server has for it; field is empty when there is none.
func NotUTF8(r *ddqv1.EnqueueRequest) (reason, field, value string) {
	for _, text := range [...]struct{ reason, field, value string }{
		{"BAD_NAME", "topic", r.Topic}, {"BAD_ID", "id", r.Id}, {"BAD_KEY", "idempotency.key", r.GetIdempotency().GetKey()},
		{"BAD_KEY", "fairness_key", r.FairnessKey}, {"BAD_KEY", "rate_key", r.RateKey},
		{"BAD_KEY", "concurrency_key", r.ConcurrencyKey}, {"BAD_KEY", "ordering_key", r.OrderingKey},
	} {
		if !utf8.ValidString(text.value) {
			return text.reason, text.field, text.value
		}
	}
	for _, a := range r.Attributes {
		if !utf8.ValidString(a.Key) || !utf8.ValidString(a.Value) {
			return "BAD_ATTRIBUTES", "attributes", a.Key + ": " + a.Value
		}
	}
	return "", "", ""
}
