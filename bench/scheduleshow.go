package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

const (
	putBatch     = 1000
	putsAtOnce   = 4
	scheduleEnd  = 30 * time.Second // how long after a part its last runs may come
	herdAhead    = 30 * time.Second // the herd comes so long after its schedules are put
	idlePayload  = 64               // bytes of a schedule
	scheduleName = "s%07d"
)

// scheduleShow is a server with schedules, and what its workers saw.
type scheduleShow struct {
	*scheduleOptions
	server   *testbed.Server
	disk     []*box.Process
	client   *client.Client
	standing int
	day      time.Time      // on which the standing schedules come
	strike   func() error   // of killed: what happens in the middle
	servers  []*box.Process // of killed
}

func newScheduleShow(o *scheduleOptions, s *testbed.Server) (*scheduleShow, error) {
	c, err := client.Dial(s.GRPCAddr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return nil, err
	}
	return &scheduleShow{scheduleOptions: o, server: s, disk: s.Disk, client: c}, nil
}

func (s *scheduleShow) play(ctx context.Context, part string, line *scheduleLine) error {
	switch part {
	case partIdle:
		return s.idle(ctx, line)
	case partForecast:
		return s.forecast(ctx, line)
	case partHerd:
		return s.herd(ctx, line)
	case partKilled:
		return s.killed(ctx, line)
	}
	return s.each(ctx, part, line)
}

// putAll puts n schedules in batches, and returns how many a second.
func (s *scheduleShow) putAll(ctx context.Context, n int, of func(i int) client.Schedule) (perSecond float64, err error) {
	from := time.Now()
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(putsAtOnce)
	for first := 0; first < n && within.Err() == nil; first += putBatch {
		g.Go(func() error {
			batch := make([]client.Schedule, 0, putBatch)
			for i := first; i < min(first+putBatch, n); i++ {
				batch = append(batch, of(i))
			}
			_, err := s.client.PutSchedules(within, batch)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("put: %w", err)
	}
	return result.Round(float64(n)/time.Since(from).Seconds(), 0), nil
}

// idle puts schedules that have nothing to do before next year, and weighs them.
func (s *scheduleShow) idle(ctx context.Context, line *scheduleLine) error {
	before, err := s.weigh(ctx)
	if err != nil {
		return err
	}
	if line.PutPerS, err = s.stand(ctx); err != nil {
		return err
	}
	line.Schedules, line.Standing = s.Standing, s.standing
	after, err := s.weigh(ctx)
	if err != nil {
		return err
	}
	n := float64(s.Standing)
	line.StoreBytes = result.Round(float64(after.Store-before.Store)/n, 1)
	line.ServerBytes = result.Round(float64(after.Server-before.Server)/n, 1)
	line.FreshBytes = result.Round(float64(after.Fresh-before.Fresh)/n, 1)
	return s.window(ctx, line, s.For)
}

// weigh weighs the store and the server, and connects to it again.
func (s *scheduleShow) weigh(ctx context.Context) (w testbed.Weight, err error) {
	if w, err = s.server.Weigh(ctx, s.Settle); err != nil {
		return w, err
	}
	_, err = s.client.Server(ctx) // repeated until it is connected
	return w, err
}

// stand puts the schedules that do nothing before a day of next year, evenly over that, and returns
// how many a second.
func (s *scheduleShow) stand(ctx context.Context) (perSecond float64, err error) {
	payload := make([]byte, idlePayload)
	s.day = time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour)
	perSecond, err = s.putAll(ctx, s.Standing, func(i int) client.Schedule {
		start := s.day.Add(time.Duration(i%86_400) * time.Second)
		return client.Schedule{Topic: "idle", Name: fmt.Sprintf(scheduleName, i), Every: 24 * time.Hour, Start: start, Task: client.Task{Payload: payload}}
	})
	if err == nil {
		s.standing = s.Standing
	}
	return perSecond, err
}

// window measures what server and store use over a time.
func (s *scheduleShow) window(ctx context.Context, line *scheduleLine, d time.Duration) error {
	servers := []*box.Process{s.server.Process}
	begun, server, store := time.Now(), box.CPU(servers), box.CPU(s.disk)
	if err := testbed.Pause(ctx, d); err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	line.ServerCPU, line.StoreCPU = result.Round(100*(box.CPU(servers)-server)/took, 2), result.Round(100*(box.CPU(s.disk)-store)/took, 2)
	return nil
}

// each plays schedules that come each second, evenly over it.
func (s *scheduleShow) each(ctx context.Context, part string, line *scheduleLine) (err error) {
	n := s.Made
	if part == partSteady || part == partKilled {
		n = s.Rate
	}
	line.Schedules = n
	begin := time.Now().Add(10*time.Second + time.Duration(n)*time.Millisecond).Truncate(time.Second)
	end := begin.Add(s.For)
	books := newRunBooks(n, begin, time.Second)
	stop := s.work(ctx, part, books)
	defer stop()
	line.PutPerS, err = s.putAll(ctx, n, func(i int) client.Schedule {
		sc := client.Schedule{
			Topic: part, Name: fmt.Sprintf(scheduleName, i), Every: time.Second, End: end.Add(-time.Millisecond),
			Start: begin.Add(time.Duration(i) * time.Second / time.Duration(n)).Truncate(time.Millisecond),
		}
		switch part {
		case partAllow:
			sc.Overlap, sc.Untracked = client.OverlapAllow, true
		case partKilled: // what is missed is made up for
			sc.Overlap, sc.CatchUp = client.OverlapAllow, client.CatchUpAll
		}
		return sc
	})
	if err != nil {
		return err
	}
	if late := time.Since(begin); late > 0 {
		fmt.Fprintf(s.Log, "schedules %s: put %v after the first were to run\n", part, late)
	}
	if err := testbed.Pause(ctx, time.Until(begin)); err != nil {
		return err
	}
	watch := s.window
	if part == partKilled {
		watch = s.struck
	}
	if err := watch(ctx, line, time.Until(end)); err != nil {
		return err
	}
	line.RunsPerS = result.Round(float64(books.came())/s.For.Seconds(), 1)
	return s.settle(ctx, part, n*int(s.For/time.Second), books, line)
}

// herd plays schedules that come at one second.
func (s *scheduleShow) herd(ctx context.Context, line *scheduleLine) (err error) {
	line.Schedules = s.Herd
	at := time.Now().Add(herdAhead + time.Duration(s.Herd)*200*time.Microsecond).Truncate(time.Second)
	books := newRunBooks(s.Herd, at, time.Second)
	stop := s.work(ctx, partHerd, books)
	defer stop()
	line.PutPerS, err = s.putAll(ctx, s.Herd, func(i int) client.Schedule {
		return client.Schedule{Topic: partHerd, Name: fmt.Sprintf(scheduleName, i), At: []time.Time{at}}
	})
	if err != nil {
		return err
	}
	if err := testbed.Pause(ctx, time.Until(at)); err != nil {
		return err
	}
	err = s.settle(ctx, partHerd, s.Herd, books, line)
	line.LastMS = result.Round(float64(books.last.Sub(at).Microseconds())/1000, 1)
	return err
}

// work begins workers, and returns what stops them.
func (s *scheduleShow) work(ctx context.Context, topic string, books *runBooks) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	cfg := sdk.Config{Topic: topic, Concurrency: 64, MaxInFlight: maxInFlight}
	if s.strike != nil {
		cfg.VisibilityTimeout = killedHold
	}
	var all sync.WaitGroup
	for range s.Workers {
		all.Go(func() {
			w := sdk.New(s.client.Conn(), cfg, sdk.HandlerFunc(func(_ context.Context, t sdk.Task) error {
				books.write(&t, time.Now())
				return nil
			}))
			_ = w.Run(ctx) // it ends with ctx
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// settle waits until all occurrences have come, or have a reason, and reads the books.
func (s *scheduleShow) settle(ctx context.Context, topic string, occurrences int, books *runBooks, line *scheduleLine) error {
	for deadline := time.Now().Add(scheduleEnd); ; {
		came, err := books.came(), error(nil)
		if line.Skipped, err = s.reasons(ctx, topic, came < occurrences); err != nil {
			return err
		}
		skipped := 0
		for _, n := range line.Skipped {
			skipped += int(n)
		}
		if line.Unexplained = max(0, occurrences-came-skipped); line.Unexplained == 0 || time.Now().After(deadline) {
			break
		}
		if err := testbed.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	books.read(line)
	return nil
}

// reasons adds up why no run was made, of all schedules of a topic; nothing when nobody needs it.
func (s *scheduleShow) reasons(ctx context.Context, topic string, needed bool) (map[string]int64, error) {
	if !needed {
		return nil, nil
	}
	all := make(map[string]int64)
	for found, err := range s.client.ListSchedules(ctx, client.ScheduleFilter{Topic: topic}) {
		if err != nil {
			return nil, err
		}
		for why, n := range found.Totals.Skipped {
			all[why] += n
		}
	}
	return all, nil
}
