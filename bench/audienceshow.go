package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

const (
	audienceName  = "bench"
	audienceTopic = "audience"
	importBatch   = 1000
	importsAtOnce = 8
	importChunk   = 500_000          // as many as ddq audience import puts in order at a time
	beginsIn      = 5 * time.Second  // after its schedule is put
	killedFor     = 60 * time.Second // how late what was delivered over a kill may be
)

var audienceZones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo",
	"Asia/Tokyo", "Asia/Kolkata", "Asia/Shanghai", "Africa/Lagos", "Australia/Sydney", "Pacific/Auckland",
}

// change is what became of a recipient while the run went on, and when: no call had been made
// before asked, and it was answered at answered.
type change struct {
	kind            changeKind
	asked, answered time.Time
}

type changeKind uint8

const (
	optsOut changeKind = iota + 1
	moves
	leaves
	joins
)

// changeCounts is how many there were of each kind.
type changeCounts struct {
	OptOuts int `json:"opt_outs"`
	Moves   int `json:"moves"`
	Leaves  int `json:"leaves"`
	Joins   int `json:"joins"`
}

// audienceShow is an audience, its run, those who change it, and what they saw.
type audienceShow struct {
	*audienceOptions
	server *testbed.Server
	client *client.Client
	run    client.AudienceRun // as it was seen last; written under mu

	imported atomic.Int64    // recipients
	mu       sync.Mutex      // guards what follows
	changed  map[int]change  // recipients by number
	got      map[int]started // what handlers got, by the number of the recipient
	joined   int
}

// started is the first start of a handler of a recipient, and what came of others. There is one of
// each recipient: it has no pointers, so that the collector of garbage passes them by.
type started struct {
	due, created, at int64 // Unix us
	first, last      int32 // attempts
	twice            int32 // times that it came again with no higher attempt
}

// again is the same after one more start.
func (s started) again(attempt int) started {
	if int32(attempt) <= s.last {
		s.twice++
	}
	s.last = int32(attempt)
	return s
}

func newAudienceShow(o *audienceOptions, s *testbed.Server) (*audienceShow, error) {
	c, err := client.Dial(s.GRPCAddr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return nil, err
	}
	return &audienceShow{
		audienceOptions: o, server: s, client: c,
		changed: make(map[int]change), got: make(map[int]started, o.Recipients),
	}, nil
}

// play imports the recipients, and has the run go from its begin to its end.
func (s *audienceShow) play(ctx context.Context, line *audienceLine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() { s.tell(ctx) })
	if err := s.fill(ctx, line); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	for range s.Workers {
		wait.Go(func() { s.work(ctx) })
	}
	begin := time.Now().Add(beginsIn).Truncate(time.Second).Add(time.Second)
	_, err := s.client.PutSchedule(ctx, client.Schedule{
		Topic: audienceTopic, Name: "run", At: []time.Time{begin}, Task: client.Task{Payload: []byte("x")},
		Audience: &client.AudienceTarget{Name: audienceName, Kind: "digest", Window: s.Window, Grain: s.Grain, SpreadFrom: new(int64)},
	})
	if err != nil {
		return err
	}
	if err := testbed.Pause(ctx, time.Until(begin)); err != nil {
		return err
	}
	return s.follow(ctx, begin, line)
}

// fill imports the recipients.
func (s *audienceShow) fill(ctx context.Context, line *audienceLine) error {
	weigh := s.server.StoreBytes()
	if weigh == nil {
		weigh = func(context.Context) (int64, error) { return 0, nil }
	}
	before, err := weigh(ctx)
	if err != nil {
		return err
	}
	_, err = s.client.CreateAudience(ctx, client.Audience{Name: audienceName, Shards: s.Shards, Kinds: []client.AudienceKind{{Name: "digest"}}})
	if err != nil {
		return err
	}
	from := time.Now()
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(importsAtOnce)
	for first := 0; first < s.Recipients && within.Err() == nil; first += importChunk {
		for batch := range slices.Chunk(inOrder(first, min(first+importChunk, s.Recipients)), importBatch) {
			g.Go(func() error {
				err := s.put(within, batch)
				s.imported.Add(int64(len(batch)))
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	line.ImportPerS = result.Round(float64(s.Recipients)/time.Since(from).Seconds(), 0)
	after, err := weigh(ctx)
	line.StoreBytes = result.Round(float64(after-before)/float64(s.Recipients), 1)
	return err
}

// inOrder are recipients in the order in which they lie, as ddq audience import puts them.
func inOrder(from, to int) []client.Recipient {
	rs := make([]client.Recipient, 0, to-from)
	for i := from; i < to; i++ {
		rs = append(rs, client.Recipient{ID: recipientID(i), Zone: audienceZones[i%len(audienceZones)]})
	}
	slices.SortFunc(rs, func(a, b client.Recipient) int {
		return cmp.Compare(xxhash.Sum64String(a.ID), xxhash.Sum64String(b.ID))
	})
	return rs
}

func (s *audienceShow) put(ctx context.Context, batch []client.Recipient) error {
	results, err := s.client.PutRecipients(ctx, audienceName, 0, batch)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// work is one worker. It is connected again when the server comes back.
func (s *audienceShow) work(ctx context.Context) {
	w := sdk.New(s.client.Conn(), sdk.Config{Topic: audienceTopic, Concurrency: 64, MaxInFlight: maxInFlight},
		sdk.HandlerFunc(func(_ context.Context, t sdk.Task) error {
			s.begin(numberOf(t.Run.Recipient), &t, time.Now())
			return nil
		}))
	_ = w.Run(ctx) // it ends with ctx
}

// begin writes down that the handler of a recipient began.
func (s *audienceShow) begin(i int, t *sdk.Task, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, there := s.got[i]
	if there {
		s.got[i] = before.again(t.Attempt)
		return
	}
	s.got[i] = started{t.Due.UnixMicro(), t.CreatedAt.UnixMicro(), at.UnixMicro(), int32(t.Attempt), int32(t.Attempt), 0}
}

// follow changes recipients, and looks at the run until it is over.
func (s *audienceShow) follow(ctx context.Context, begin time.Time, line *audienceLine) error {
	within, cancel := context.WithDeadline(ctx, begin.Add(s.Window))
	defer cancel()
	g, within := errgroup.WithContext(within)
	g.Go(func() error { return s.churn(within) })
	if s.Kill {
		g.Go(func() error { return s.kill(within, begin.Add(s.Window/2)) })
	}
	until := begin.Add(2*s.Window + 2*time.Minute)
	for s.run.End.IsZero() {
		if err := s.look(ctx, line); err != nil && !s.Kill {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("the run has not ended: %+v", s.run)
		}
		if err := testbed.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return g.Wait()
}

// look asks how far the run is.
func (s *audienceShow) look(ctx context.Context, line *audienceLine) error {
	runs, err := s.client.ListAudienceRuns(ctx, audienceName)
	if err != nil || len(runs) == 0 {
		return err
	}
	s.mu.Lock()
	s.run = runs[0]
	s.mu.Unlock()
	line.BehindMS = max(line.BehindMS, s.run.Behind.Milliseconds())
	status, err := s.client.DescribeTopic(ctx, audienceTopic)
	line.TasksInStore = max(line.TasksInStore, status.Depth.Scheduled+status.Depth.Ready)
	return err
}

// tell writes how far it is, a line a minute, until ctx ends.
func (s *audienceShow) tell(ctx context.Context) {
	began := time.Now()
	for testbed.Pause(ctx, time.Minute) == nil {
		fmt.Fprintf(s.Log, "audience: %v: %s\n", time.Since(began).Round(time.Second), s.progress())
	}
}

// progress is how far it is, in words.
func (s *audienceShow) progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run.Begin.IsZero() {
		return fmt.Sprintf("%d of %d recipients are imported", s.imported.Load(), s.Recipients)
	}
	return fmt.Sprintf("%d recipients have their task, and the run is %v behind their places", len(s.got), s.run.Behind.Round(time.Millisecond))
}

func (s *audienceShow) kill(ctx context.Context, at time.Time) error {
	if err := testbed.Pause(ctx, time.Until(at)); err != nil {
		return err
	}
	_, err := s.server.Restart(ctx, func() { fmt.Fprintln(s.Log, "audience: the server is killed and started again") })
	return err
}

// churn changes recipients until ctx ends.
func (s *audienceShow) churn(ctx context.Context) error {
	if s.Churn == 0 {
		return nil
	}
	const each = 50 * time.Millisecond
	r := rand.New(rand.NewPCG(1, 2))
	var due float64
	for tick := time.NewTicker(each); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return nil
		case <-tick.C:
		}
		for due += float64(s.Churn) * each.Seconds(); due >= 1; due-- {
			if err := s.change(ctx, r); err != nil && ctx.Err() == nil {
				return fmt.Errorf("churn: %w", err)
			}
		}
	}
}

// change changes one recipient that nobody has changed yet.
func (s *audienceShow) change(ctx context.Context, r *rand.Rand) error {
	kind, i := changeKind(1+r.IntN(4)), r.IntN(s.Recipients)
	if kind == joins {
		i = s.Recipients + s.joined
		s.joined++
	}
	if _, there := s.changed[i]; there {
		return nil
	}
	c := change{kind: kind, asked: time.Now()}
	err := s.make(ctx, kind, i)
	for s.Kill && err != nil && ctx.Err() == nil {
		_ = testbed.Pause(ctx, 100*time.Millisecond)
		err = s.make(ctx, kind, i)
	}
	c.answered = time.Now()
	if err != nil {
		c.answered = c.asked.Add(24 * time.Hour) // nobody knows
	}
	s.changed[i] = c
	return err
}

func (s *audienceShow) make(ctx context.Context, kind changeKind, i int) error {
	p := client.Recipient{ID: recipientID(i), Zone: audienceZones[i%len(audienceZones)]}
	switch kind {
	case optsOut:
		p.Off = []string{"digest"}
	case moves:
		p.Zone = audienceZones[(i+5)%len(audienceZones)]
	case leaves:
		_, err := s.client.DeleteRecipients(ctx, audienceName, []string{p.ID})
		return err
	case joins:
	}
	return s.put(ctx, []client.Recipient{p})
}
