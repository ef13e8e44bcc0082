package forecasts

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// Request says what a forecast is of.
type Request struct {
	Topic    string        // empty: all topics
	From, To store.Millis  // 0: now, and a day after From
	Bucket   time.Duration // 0: a minute
}

// Bounds of a forecast.
const (
	MaxBuckets = 2000

	defaultBucket = time.Minute
	defaultSpan   = 24 * time.Hour
	minBucket     = time.Second
	maxBucket     = 366 * 24 * time.Hour
)

// span checks a request, and fills in what it leaves out.
func (r *Request) span(now store.Millis) (span forecast.Range, err *problem.Error) {
	if r.Topic != "" {
		if err := actors.CheckTopicName("topic", r.Topic); err != nil {
			return span, err
		}
	}
	bucket := cmp.Or(r.Bucket, defaultBucket)
	if bucket < minBucket || bucket > maxBucket {
		return span, problem.BadField("bucket_ms", "OUT_OF_RANGE_FIELD", "bucket_ms must be %d to %d", minBucket.Milliseconds(), maxBucket.Milliseconds())
	}
	width := store.Millis(bucket.Milliseconds())
	from := r.From
	if from == 0 {
		from = now - now%width
	}
	to := cmp.Or(r.To, from.Add(defaultSpan))
	if to <= from {
		return span, problem.BadField("to", "BAD_TIME", "to is not after from")
	}
	n := (to - from + width - 1) / width
	if n > MaxBuckets {
		return span, problem.BadField("bucket_ms", "OUT_OF_RANGE_FIELD", "%d buckets of %v are from from to to; at most %d are allowed", n, bucket, MaxBuckets)
	}
	return forecast.Range{From: from, Bucket: bucket, Count: int(n)}, nil
}

// Forecasted is a forecast, and what it warns of.
type Forecasted struct {
	forecast.Forecast
	Limit    int64 // tasks a second beyond which it warns; 0: several topics, which have a limit each
	Warnings []forecast.Collision
}

// warnings is of how many buckets a forecast warns at most.
const warnings = 10

// Forecast counts what is due in each bucket of a range.
func (f *Forecasts) Forecast(ctx context.Context, r Request) (Forecasted, error) {
	if err := f.node.Serving(); err != nil {
		return Forecasted{}, err
	}
	span, e := r.span(f.node.Clock().Millis())
	if e != nil {
		return Forecasted{}, e
	}
	topics, e := f.topics(ctx, r.Topic)
	if e != nil {
		return Forecasted{}, e
	}
	done, e := f.turn(ctx)
	if e != nil {
		return Forecasted{}, e
	}
	defer done()
	m, e := f.maker(ctx, span, topics)
	if e != nil {
		return Forecasted{}, e
	}
	if e := m.make(ctx); e != nil {
		return Forecasted{}, e
	}
	out := Forecasted{Forecast: *m.out}
	most, rated := int64(f.node.Config().Limits.WarnDue), false
	if out.Limit = most; len(topics) == 1 {
		out.Limit, rated = forecast.Limit(&topics[0], int(most))
	}
	out.Warnings = out.Busiest(out.Limit, warnings)
	for i := range out.Warnings {
		out.Warnings[i].Rated = rated
	}
	return out, nil
}

// maker makes one forecast.
type maker struct {
	*Forecasts
	*reader
	forecast.Range
	shards []located
	wakes  [][]int64 // of each shard, by Bounds(-Lead)

	mu    sync.Mutex
	out   *forecast.Forecast // guarded by mu while shards are read
	sizes map[string]float64 // of audiences; guarded by mu
}

func (f *Forecasts) maker(ctx context.Context, span forecast.Range, topics []store.Topic) (*maker, *problem.Error) {
	reader, err := f.reader(ctx)
	shards := locate(topics)
	return &maker{
		Forecasts: f, reader: reader, Range: span, shards: shards, wakes: make([][]int64, len(shards)),
		out: forecast.New(span), sizes: make(map[string]float64),
	}, err
}

// make counts first, and then reads as many cells as that allows.
func (m *maker) make(ctx context.Context) *problem.Error {
	if e := each(ctx, len(m.shards), m.count); e != nil || m.cells == nil {
		return e
	}
	wakes, most := int64(0), 0
	for _, counts := range m.wakes {
		n := sum(counts[:len(counts)-1])
		wakes += n
		if n > 0 {
			most++
		}
	}
	p := plan{exact: wakes <= maxExpanded, read: maxExpanded}
	if !p.exact {
		p.read = max(minSample, maxSample/most)
	}
	p.steps = int(min(maxSteps, max(minSteps, maxSteps/max(1, min(wakes, int64(p.read)*int64(max(1, most)))))))
	return each(ctx, len(m.shards), func(ctx context.Context, i int) error {
		if sum(m.wakes[i]) == 0 {
			return nil
		}
		return m.expand(ctx, i, p)
	})
}

// count counts tasks and wakes of a shard.
func (m *maker) count(ctx context.Context, i int) error {
	_, pending, err := m.tasks.Histogram(ctx, m.shards[i].Shard, m.Bounds(0))
	if err != nil {
		return err
	}
	if m.cells != nil {
		if _, m.wakes[i], err = m.cells.WakeHistogram(ctx, m.shards[i].Shard, m.Bounds(-schedule.Lead)); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.AddPending(pending)
	return nil
}

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// add adds what was found of a shard.
func (m *maker) add(part *forecast.Forecast) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out.Add(part)
}

// maxAudiences is of how many audiences a forecast finds how many recipients they have.
const maxAudiences = 20

// recipientsOf is how many recipients an audience has; false when that is not known.
func (m *maker) recipientsOf(ctx context.Context, name string) (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, known := m.sizes[name]
	if !known && len(m.sizes) < maxAudiences && m.recipients != nil {
		found, err := m.recipients(ctx, name)
		if n = float64(found); err != nil {
			n = math.NaN()
		}
		m.sizes[name], known = n, true
	}
	return int64(n), known && !math.IsNaN(n)
}
