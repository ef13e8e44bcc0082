package outbox

import (
	"errors"
	"maps"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// rests are topics that could not be enqueued to a moment ago: they are left alone, and the
// rows of others go on. It has no clock; the relay owns it.
type rests struct {
	until map[string]time.Time
	said  map[string]time.Time // when the log was told of a topic, in the last minute

	// All rows up to after are handed on, or of topics that rest, or were committed late: so
	// that the rows of those topics, which may be millions, are not looked through for each
	// batch. Since looked is when they were.
	after  int64
	looked time.Time
}

// rest is how long a topic rests when the server does not say, and how long it may take until
// a row is found that was committed late meanwhile.
const rest = time.Second

// longestRest bounds what the server says.
const longestRest = time.Minute

// view is what a relay reads: rows behind after of all topics but those in without, and again
// after next at the latest.
type view struct {
	without []string
	after   int64
	next    time.Duration
}

// add has a topic rest after an error, and tells whether that is news.
func (r *rests) add(topic string, err error, now time.Time) bool {
	wait := rest
	if e := (*client.Error)(nil); errors.As(err, &e) && e.RetryAfter > 0 {
		wait = min(e.RetryAfter, longestRest)
	}
	if r.until == nil {
		r.until, r.said = make(map[string]time.Time), make(map[string]time.Time)
	}
	r.until[topic] = now.Add(wait)
	_, known := r.said[topic]
	if !known {
		r.said[topic] = now
	}
	return !known
}

// handed says that all rows of a view, up to this one, are handed on or rest.
func (r *rests) handed(seq int64) { r.after = seq }

// reset forgets how far rows were handed on.
func (r *rests) reset() { r.after = 0 }

// at returns what to read now. Topics that have rested are read from the beginning.
func (r *rests) at(now time.Time, most time.Duration) view {
	maps.DeleteFunc(r.said, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Minute })
	v := view{next: most}
	ended := false
	for topic, until := range r.until {
		if !until.After(now) {
			delete(r.until, topic)
			ended = true
			continue
		}
		v.without, v.next = append(v.without, topic), min(v.next, until.Sub(now))
	}
	if ended || len(v.without) == 0 || now.Sub(r.looked) >= rest {
		r.after, r.looked = 0, now
	}
	v.after = r.after
	if v.after > 0 {
		v.next = min(v.next, r.looked.Add(rest).Sub(now))
	}
	return v
}
