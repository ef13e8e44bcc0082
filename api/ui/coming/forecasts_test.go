package coming

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// server makes forecasts, each of which takes a while.
type server struct {
	ddqv1.ScheduleServiceClient
	takes time.Duration

	mu     sync.Mutex
	answer func(*ddqv1.ForecastRequest) (*ddqv1.ForecastResponse, error) // guarded by mu
	asked  int                                                           // guarded by mu
}

func (s *server) Forecast(ctx context.Context, r *ddqv1.ForecastRequest, _ ...grpc.CallOption) (*ddqv1.ForecastResponse, error) {
	s.mu.Lock()
	s.asked++
	answer := s.answer
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
		return answer(r)
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (s *server) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// says has the server answer with so many pending tasks in the first bucket.
func (s *server) says(n int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(*ddqv1.ForecastRequest) (*ddqv1.ForecastResponse, error) {
		return &ddqv1.ForecastResponse{Pending: []int64{n}, Exact: true}, err
	}
}

func rendered(t *testing.T, nodes ...g.Node) string {
	t.Helper()
	var text strings.Builder
	if err := g.Group(nodes).Render(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestAForecastIsMadeOnceForAllWhoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: 100 * time.Millisecond}
		s.says(7, nil)
		fs := newForecasts(s)
		defer fs.close()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if f := fs.Week(t.Context(), "", time.Now()); !f.known || f.tasks[0] != 7 {
					t.Errorf("%+v", f)
				}
			})
		}
		all.Wait()
		for range 50 {
			time.Sleep(time.Second)
			fs.Week(t.Context(), "", time.Now())
		}
		if n := s.times(); n != 1 {
			t.Errorf("it was made %d times in a minute", n)
		}
		s.says(8, nil)
		time.Sleep(20 * time.Second)
		if f := fs.Week(t.Context(), "", time.Now()); f.tasks[0] != 7 {
			t.Errorf("a page has waited for a new forecast: %d", f.tasks[0])
		}
		time.Sleep(time.Second)
		if f := fs.Week(t.Context(), "", time.Now()); f.tasks[0] != 8 || s.times() != 2 {
			t.Errorf("%d, asked %d times", f.tasks[0], s.times())
		}
		if fs.Week(t.Context(), "mail", time.Now()); s.times() != 3 {
			t.Error("another topic has the same forecast")
		}
	})
}

// TestNoPageWaitsForAForecast that takes long. It is there as soon as it is made, and not made again before long.
func TestNoPageWaitsForAForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: 10 * time.Second}
		s.says(7, nil)
		fs := newForecasts(s)
		defer fs.close()
		began := time.Now()
		f := fs.Day(t.Context(), "", began)
		if took := time.Since(began); f.known || took != waitFor {
			t.Errorf("known %v after %v", f.known, took)
		}
		if got := rendered(t, f.Missing(), f.Lanes(), f.Heat(), f.Minutes()); !strings.Contains(got, "being counted") {
			t.Error(got)
		}
		time.Sleep(10 * time.Second)
		for range rest * 10 {
			if f := fs.Day(t.Context(), "", time.Now()); !f.known {
				t.Fatal("there is no forecast")
			}
			time.Sleep(time.Second)
		}
		if n := s.times(); n != 1 && n != 2 {
			t.Errorf("it was made %d times", n)
		}
	})
}

func TestAForecastThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		s.says(0, status.Error(codes.Unavailable, "away"))
		fs := newForecasts(s)
		defer fs.close()
		if f := fs.Hour(t.Context(), "", time.Now()); !strings.Contains(rendered(t, f.Missing()), "cannot be counted") || s.times() != 1 {
			t.Errorf("%+v", f)
		}
		s.says(3, nil)
		time.Sleep(hour.every)
		if f := fs.Hour(t.Context(), "", time.Now()); !f.known {
			t.Error("it is never tried again")
		}
		s.says(0, status.Error(codes.Unavailable, "away"))
		time.Sleep(hour.every + time.Second)
		fs.Hour(t.Context(), "", time.Now())
		time.Sleep(time.Second)
		if f := fs.Hour(t.Context(), "", time.Now()); !f.known || f.tasks[0] != 3 {
			t.Error("the last forecast is not shown")
		}
		time.Sleep(goodFor + hour.every)
		if f := fs.Hour(t.Context(), "", time.Now()); f.known {
			t.Error("a forecast of long ago is shown")
		}
	})
}

func TestForecastsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: time.Hour}
		s.says(0, nil)
		fs := newForecasts(s)
		fs.Week(t.Context(), "", time.Now())
		fs.close()
		fs.close()
		if fs.Week(t.Context(), "mail", time.Now()); s.times() != 1 {
			t.Error("a server is asked that shuts down")
		}
	})
}

// TestPicturesOfAForecast: those of tasks, what is planned, and herds.
func TestPicturesOfAForecast(t *testing.T) {
	from := time.Date(2030, 6, 1, 22, 0, 0, 0, time.UTC)
	r := &ddqv1.ForecastResponse{
		Pending: make([]int64, 24*60), Next: make([]int64, 24*60), Later: []int64{1}, Recipients: make([]int64, 24*60+5), Overdue: 12,
		Warnings: []*ddqv1.DueWarning{{Time: timestamppb.New(from.Add(150 * time.Minute)), SpanMs: 60_000, Due: 2_000_000, Limit: 600_000, RateLimited: true}},
	}
	r.Pending[61], r.Next[150], r.Recipients[150], r.Pending[5] = 5, 3, 2_000_000, -9
	f := newForecast(asked{span: day, topic: "<mail>"}, from, r)
	got := rendered(t, f.Missing(), f.Lanes(), f.Minutes(), f.columns("Hours", 0, 160))
	for _, want := range []string{
		`<th scope="col" class="number">22</th>`, `title="Sat 1 Jun 23:00, 5 tasks"`, `title="Sun 2 Jun 00:00, 3 runs of schedules, 2` + "\u202f" + `000` + "\u202f" + `000 tasks of audiences, with a herd">2.0M<b>!</b>`,
		`from=2030-06-02T00%3A00%3A00&amp;topic=%3Cmail%3E`, "Sun 2 Jun 00:30", "are let through by the rate of the topic", "Some of it is estimated.", "12 are due already", `class="planned"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "<b>!</b>"); n != 1 {
		t.Errorf("%d cells are marked", n)
	}
	for name, r := range map[string]*ddqv1.ForecastResponse{"empty": {}, "too much": {Pending: make([]int64, 5000)}} {
		for _, s := range []span{hour, day, week} {
			f := newForecast(asked{span: s}, from, r)
			for _, now := range []time.Time{{}, from, from.Add(1000 * time.Hour)} {
				got := rendered(t, f.Minutes())
				switch s {
				case week:
					got = rendered(t, f.Hours(now), f.Heat())
				case day:
					got = rendered(t, f.Lanes())
				}
				if strings.Contains(got, "heat-") || strings.Contains(got, "<rect") {
					t.Errorf("%s: %s", name, got)
				}
			}
		}
	}
}
