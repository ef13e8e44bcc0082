package outbox

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
)

func TestATopicRestsAsLongAsTheServerSays(t *testing.T) {
	now := time.Unix(1_000, 0)
	var r rests
	r.add("a", &client.Error{Code: codes.ResourceExhausted, RetryAfter: 3 * time.Second}, now)
	r.add("b", &client.Error{Code: codes.Unavailable}, now)
	r.add("c", &client.Error{Code: codes.ResourceExhausted, RetryAfter: time.Hour}, now)
	for _, c := range []struct {
		after  time.Duration
		topics []string
		next   time.Duration
	}{
		{0, []string{"a", "b", "c"}, time.Second},
		{1500 * time.Millisecond, []string{"a", "c"}, 1500 * time.Millisecond},
		{3 * time.Second, []string{"c"}, 2 * time.Second},
		{time.Minute, nil, 2 * time.Second},
	} {
		v := r.at(now.Add(c.after), 2*time.Second)
		slices.Sort(v.without)
		if !slices.Equal(v.without, c.topics) || v.next != c.next || v.after != 0 {
			t.Errorf("after %v: %+v, want %v for %v", c.after, v, c.topics, c.next)
		}
	}
}

// While a topic rests its rows are not looked through again, but once a second, and when a
// topic has rested.
func TestRowsOfATopicThatRestsAreLookedThroughSeldom(t *testing.T) {
	now := time.Unix(1_000, 0)
	var r rests
	at := func(after time.Duration, from int64, next time.Duration) {
		t.Helper()
		if v := r.at(now.Add(after), 10*time.Second); v.after != from || v.next != next {
			t.Errorf("after %v: %+v, want rows behind %d for %v", after, v, from, next)
		}
	}
	at(0, 0, 10*time.Second)
	r.handed(500)
	at(0, 0, 10*time.Second) // nothing rests
	r.add("a", &client.Error{RetryAfter: 5 * time.Second}, now)
	r.handed(1_000)
	at(100*time.Millisecond, 1_000, 900*time.Millisecond)
	r.handed(1_500)
	at(900*time.Millisecond, 1_500, 100*time.Millisecond)
	at(time.Second, 0, 4*time.Second)
	r.handed(2_000)
	r.add("b", &client.Error{RetryAfter: 500 * time.Millisecond}, now.Add(time.Second))
	at(1_400*time.Millisecond, 2_000, 100*time.Millisecond)
	at(1_500*time.Millisecond, 0, 3_500*time.Millisecond) // b has rested
	r.handed(2_500)
	r.reset()
	at(1_600*time.Millisecond, 0, 3_400*time.Millisecond)
}

// A topic that is paused for a day is in the log once a minute, not once a second.
func TestTheLogIsToldOfATopicOnceAMinute(t *testing.T) {
	now := time.Unix(1_000, 0)
	var r rests
	said := 0
	for n := range 120 {
		r.at(now, time.Second)
		if r.add("a", &client.Error{Code: codes.ResourceExhausted}, now) {
			said++
		}
		if news := r.add("b", &client.Error{Code: codes.NotFound}, now); news != (n%60 == 0) {
			t.Errorf("in second %d: %v", n, news)
		}
		now = now.Add(time.Second)
	}
	if said != 2 {
		t.Errorf("said %d times in two minutes", said)
	}
}
