package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/result"
)

// forecastCalls is how many forecasts are made behind the first.
const forecastCalls = 10

// forecastFigures are how long it takes to forecast a day by minutes, in ms, and what is in it.
type forecastFigures struct {
	FirstMS float64 `json:"first_ms"`
	P50MS   float64 `json:"p50_ms"` // of those behind it
	MaxMS   float64 `json:"max_ms"`
	Tasks   int64   `json:"tasks"` // that are due in it
	Runs    int64   `json:"runs"`  // of schedules
	Exact   bool    `json:"exact"`
}

// forecast enqueues as many tasks of the day of the standing schedules, and forecasts that day.
func (s *scheduleShow) forecast(ctx context.Context, line *scheduleLine) (err error) {
	if s.standing == 0 {
		if line.PutPerS, err = s.stand(ctx); err != nil {
			return err
		}
	}
	line.Schedules, line.Standing = s.standing, s.standing
	if err := s.enqueueDay(ctx); err != nil {
		return err
	}
	f := &forecastFigures{}
	line.Forecast = f
	if f.FirstMS, err = s.forecastOnce(ctx, f); err != nil {
		return err
	}
	took := make([]float64, forecastCalls)
	for i := range took {
		if took[i], err = s.forecastOnce(ctx, f); err != nil {
			return err
		}
	}
	slices.Sort(took)
	f.P50MS, f.MaxMS = took[len(took)/2], took[len(took)-1]
	return nil
}

// enqueueDay enqueues tasks that are due evenly over the day, in batches.
func (s *scheduleShow) enqueueDay(ctx context.Context) error {
	each, payload := 24*time.Hour/time.Duration(s.standing), make([]byte, idlePayload)
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(batchCallers)
	for first := 0; first < s.standing && within.Err() == nil; first += batchSize {
		g.Go(func() error {
			batch := make([]client.Task, min(batchSize, s.standing-first))
			for i := range batch {
				batch[i] = client.Task{Topic: "pending", Payload: payload, Due: s.day.Add(time.Duration(first+i) * each).Truncate(time.Millisecond)}
			}
			_, err := s.client.EnqueueBatch(within, batch)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// forecastOnce makes one forecast, notes what is in it, and returns how many ms it took.
func (s *scheduleShow) forecastOnce(ctx context.Context, f *forecastFigures) (float64, error) {
	from := time.Now()
	got, err := s.client.Forecast(ctx, "", client.ForecastRange{From: s.day, To: s.day.Add(24 * time.Hour), Bucket: time.Minute})
	if err != nil {
		return 0, fmt.Errorf("forecast: %w", err)
	}
	took := time.Since(from)
	f.Tasks, f.Runs, f.Exact = 0, 0, got.Exact
	for i := range got.Pending {
		f.Tasks += got.Pending[i]
		f.Runs += got.Next[i] + got.Later[i]
	}
	return result.Round(float64(took.Microseconds())/1000, 1), nil
}
