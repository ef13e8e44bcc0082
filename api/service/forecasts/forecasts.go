package forecasts

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Forecasts says what is to come. Any node does. Its methods are safe for concurrent use, and
// return *problem.Error.
type Forecasts struct {
	node       *actors.Node
	tasks      Tasks
	cells      store.Cells // nil: the store keeps none
	topics     Topics
	recipients Recipients // nil where the store keeps no cells
	turns      chan struct{}
	pace       pace
}

// Topics are those to look in: one by name, or all where it is empty.
type Topics func(ctx context.Context, name string) ([]store.Topic, *problem.Error)

// Tasks is the role of the store for tasks.
type Tasks interface {
	Histogram(ctx context.Context, s store.Shard, bounds []store.Millis) (store.Stamp, []int64, error)
}

// Recipients says how many an audience has.
type Recipients func(ctx context.Context, audience string) (int64, error)

// atOnce is how many forecasts a node makes at a time: each may read many cells.
const atOnce = 2

// New returns the use cases of forecasts of a node.
func New(node *actors.Node, tasks Tasks, topics Topics, recipients Recipients) *Forecasts {
	return &Forecasts{node: node, tasks: tasks, cells: node.Cells(), topics: topics, recipients: recipients, turns: make(chan struct{}, atOnce)}
}

// located is a shard and its topic.
type located struct {
	store.Shard
	topic *store.Topic
}

func locate(topics []store.Topic) (all []located) {
	for i := range topics {
		for _, shard := range place.Shards(&topics[i]) {
			all = append(all, located{shard, &topics[i]})
		}
	}
	return all
}

// shardsOnce is how many shards a call works on at a time.
const shardsOnce = 8

// each calls do for each of n, several at a time, and returns the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) *problem.Error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(shardsOnce)
	for i := range n {
		g.Go(func() error {
			if err := within.Err(); err != nil {
				return err
			}
			return do(within, i)
		})
	}
	return problem.FromStore(g.Wait())
}

// turn waits for the turn of a call that reads much.
func (f *Forecasts) turn(ctx context.Context) (done func(), err *problem.Error) {
	select {
	case f.turns <- struct{}{}:
		return func() { <-f.turns }, nil
	case <-ctx.Done():
		return nil, problem.FromStore(ctx.Err())
	}
}

// read is a schedule as it was read.
type read struct {
	*schedule.Schedule
	table    *timetable.Timetable
	excluded func(time.Time) bool
}

// reader reads schedules, for one call.
type reader struct {
	known schedule.Calendars
}

func (f *Forecasts) reader(ctx context.Context) (*reader, *problem.Error) {
	known, err := f.node.Calendars().Fresh(ctx)
	return &reader{known}, problem.FromStore(err)
}

func (r *reader) read(c store.Cell) (*read, error) {
	s, err := schedule.FromCell(c)
	if err != nil {
		return nil, err
	}
	table, err := s.Table()
	if err != nil {
		return nil, err
	}
	return &read{s, table, r.known.Excluded(s, table.Zone())}, nil
}

// pace bounds what is spent on what nobody waits for: one at a time, and a tenth of the time over
// a while. It is the generic cell rate algorithm of ITU-T I.371, counted in time spent.
type pace struct {
	mu    sync.Mutex
	busy  bool      // guarded by mu
	until time.Time // guarded by mu; when what was spent is paid for
}

const (
	pauses = 9                // each is paid for by a pause of so many times its length
	credit = 10 * time.Second // pauses that may be owed
)

// try reports whether there is to be one now. The caller says with done when it is over.
func (p *pace) try() (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	if p.busy || p.until.After(began.Add(credit)) {
		return nil, false
	}
	p.busy = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		if p.until.Before(now) {
			p.until = now
		}
		p.busy, p.until = false, p.until.Add(pauses*now.Sub(began))
	}, true
}
