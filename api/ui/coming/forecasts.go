package coming

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

const (
	// waitFor is how long a page waits for a forecast that nobody has asked for of late.
	waitFor = 500 * time.Millisecond
	// countFor is how long the server may count.
	countFor = 20 * time.Second
	// rest is how many times as long as the server counted it is not asked again.
	rest = 20
	// goodFor is how long a forecast is shown after it should have been made anew.
	goodFor = 5 * time.Minute
	// maxKept is how many forecasts are kept.
	maxKept = 200
)

// span is which time a forecast is of.
type span struct {
	bucket  time.Duration
	buckets int
	from    time.Duration // it begins at a multiple of this
	every   time.Duration // how often it is asked for
}

var (
	hour = span{bucket: time.Minute, buckets: 60, from: time.Minute, every: 10 * time.Second}
	day  = span{bucket: time.Minute, buckets: 24 * 60, from: time.Hour, every: time.Minute}
	week = span{bucket: time.Hour, buckets: 7 * 24, from: 24 * time.Hour, every: time.Minute}
)

// asked is what somebody wants to know, and with which rights.
type asked struct {
	span
	topic, rights string
}

// Forecasts are those that somebody looked at of late. It is safe for concurrent use. It owns a goroutine for
// each forecast that the server is asked for, gone with the answer or once Close returns.
type Forecasts struct {
	schedules ddqv1.ScheduleServiceClient
	done      context.Context //nolint:containedctx // it is that of the goroutines
	stop      context.CancelFunc

	mu      sync.Mutex
	running sync.WaitGroup
	all     map[asked]*kept // guarded by mu
}

// kept is a forecast as it was last made.
type kept struct {
	answered chan struct{} // closed when the server has answered; nil: it is not asked
	last     *Forecast     // nil: there was none yet
	err      error         // of the last time
	again    time.Time     // from when on it is asked again
}

func newForecasts(schedules ddqv1.ScheduleServiceClient) *Forecasts {
	done, stop := context.WithCancel(context.Background())
	return &Forecasts{schedules: schedules, done: done, stop: stop, all: make(map[asked]*kept)}
}

// close ends what is asked for.
func (fs *Forecasts) close() {
	fs.mu.Lock()
	fs.stop()
	fs.mu.Unlock()
	fs.running.Wait()
}

// Hour is of the next hour by minute: of a topic, or of all where it is empty.
func (fs *Forecasts) Hour(ctx context.Context, topic string, now time.Time) *Forecast {
	return fs.look(ctx, hour, topic, now)
}

// Day is of the next 24 hours by minute.
func (fs *Forecasts) Day(ctx context.Context, topic string, now time.Time) *Forecast {
	return fs.look(ctx, day, topic, now)
}

// Week is of this day and the next six, by hour.
func (fs *Forecasts) Week(ctx context.Context, topic string, now time.Time) *Forecast {
	return fs.look(ctx, week, topic, now)
}

// look returns the forecast that is known, and has one made where it is old. It never returns nil.
func (fs *Forecasts) look(ctx context.Context, s span, topic string, now time.Time) *Forecast {
	a := asked{s, topic, frame.Who(ctx).Rights()}
	k, answered := fs.ask(ctx, a, now.Truncate(s.from))
	if answered != nil {
		enough := time.NewTimer(waitFor)
		defer enough.Stop()
		select {
		case <-answered:
		case <-enough.C:
		case <-ctx.Done():
		}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if k.last != nil {
		return k.last
	}
	return &Forecast{topic: topic, span: s, err: k.err}
}

// ask has the server asked, if it is time for it. answered is closed when there is a first answer; nil: there is
// one already, which is good until the next one comes.
func (fs *Forecasts) ask(ctx context.Context, a asked, from time.Time) (k *kept, answered chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if k = fs.all[a]; k == nil {
		if len(fs.all) >= maxKept {
			clear(fs.all)
		}
		k = new(kept)
		fs.all[a] = k
	}
	if k.answered == nil && !time.Now().Before(k.again) && fs.done.Err() == nil {
		k.answered = make(chan struct{})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countFor)
		release := context.AfterFunc(fs.done, cancel)
		fs.running.Go(func() {
			defer cancel()
			defer release()
			fs.make(ctx, a, k, from)
		})
	}
	if k.last == nil || time.Since(k.again) > goodFor {
		k.last = nil
		return k, k.answered
	}
	return k, nil
}

// make asks the server. The calls are made as those of ctx are.
func (fs *Forecasts) make(ctx context.Context, a asked, k *kept, from time.Time) {
	began := time.Now()
	r, err := fs.schedules.Forecast(ctx, &ddqv1.ForecastRequest{
		Topic: a.topic, From: timestamppb.New(from), To: timestamppb.New(from.Add(a.bucket * time.Duration(a.buckets))), BucketMs: a.bucket.Milliseconds(),
	})
	now := time.Now()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if k.err = err; err == nil {
		k.last = newForecast(a, from, r)
	}
	k.again = now.Add(max(a.every, rest*now.Sub(began)))
	close(k.answered)
	k.answered = nil
}
