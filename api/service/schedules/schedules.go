package schedules

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Schedules is what is done with schedules. Any node does it: a schedule is read from its
// cell, stepped, and put back if nobody else has changed it meanwhile. The owner of the
// shard, which makes the runs, does the same. Its methods are safe for concurrent use, and
// return *problem.Error.
type Schedules struct {
	node      *actors.Node
	cells     store.Cells // nil: the store keeps none
	calendars calendarCells
	limits    *actors.Limits
	topics    Topics
	tasks     Tasks
	audiences Audiences
	forecasts Forecasts
	quota     *quota.Quota
}

// Topics are those to look in: one by name, or all where it is empty.
type Topics func(ctx context.Context, name string) ([]store.Topic, *problem.Error)

// Tasks is what is done for the tasks of schedules as for all others.
type Tasks interface {
	// Check checks what a task brings, as an enqueue does.
	Check(t *store.Task, expireAfter time.Duration) *problem.Error
	// CheckFlow checks a workflow that a schedule starts as a submit does; the ids have so many
	// bytes. at is before the names of its fields.
	CheckFlow(at string, d *graph.Definition, home string, id int) *problem.Error
	// FitsFlow refuses one of a topic whose topics take not all of its tasks. With create those of
	// them are made that are missing.
	FitsFlow(ctx context.Context, at string, d *graph.Definition, home *store.Topic, create bool) *problem.Error
	// Cancel has the worker of a task end it, or deletes the task when none has it.
	Cancel(ctx context.Context, topic *actors.Topic, id string) *problem.Error
	// Discard deletes dead letters of runs of a schedule in a shard, and returns those that are requeued.
	Discard(ctx context.Context, topic *store.Topic, home store.Shard, ids []string) (requeued []string, err *problem.Error)
	// Outbox refuses what may leave a parcel, when its topic has too many.
	Outbox(ctx context.Context, topic *store.Topic) *problem.Error
	// Admit begins the admission of a call's tasks.
	Admit() Admission
	// AdmitSchedule lets a schedule be created in a topic. leave is called once it is, or is not going to be.
	AdmitSchedule(ctx context.Context, topic string) (leave func(), err *problem.Error)
	// Smooth says where in a span a task is needed least.
	Smooth(topic *actors.Topic, earliest, latest store.Millis) store.Millis
}

// Admission lets the tasks of one call into topics with a backlog cap.
type Admission interface {
	Enter(ctx context.Context, topic *store.Topic) *problem.Error
	Leave() // once the call is answered
}

// Audiences is what schedules ask of audiences. It is not asked where the store keeps no
// cells.
type Audiences interface {
	// CheckTarget refuses an audience that does not exist, or does not have the kind.
	CheckTarget(ctx context.Context, audience, kind string) error
	// Preview says what a run would do that is ordered so.
	Preview(ctx context.Context, o audience.Order) (audience.Preview, error)
}

// Forecasts is what is to come.
type Forecasts interface {
	// Collision returns the second in which most is due beyond what the topic lets through,
	// of those of the next runs of a schedule; nil: there is none. Hurried: it may be left out.
	Collision(ctx context.Context, m *forecast.Meeting, hurried bool) (*forecast.Collision, *problem.Error)
}

// New returns the use cases of schedules of a node.
func New(node *actors.Node, topics Topics, tasks Tasks, audiences Audiences, forecasts Forecasts) *Schedules {
	return &Schedules{
		node: node, cells: node.Cells(), calendars: calendarCells{node, node.Cells()}, limits: &node.Config().Limits,
		topics: topics, tasks: tasks, audiences: audiences, forecasts: forecasts,
		quota: &quota.Quota{Share: quotaShare},
	}
}

// located is a schedule and where it was read.
type located struct {
	*schedule.Schedule
	topic *store.Topic
	shard store.Shard
	cell  store.Cell
	from  uint64 // the server that it was read from, see store.Commit
	table *timetable.Timetable

	unsure   bool     // a commit may have been made: its answer was lost, and now there is another one
	requeued []string // runs that a step was to leave behind, and that go on
}

// ready refuses calls that cannot be carried out here.
func (s *Schedules) ready() *problem.Error {
	if s.cells == nil {
		return &problem.Error{Kind: problem.Precondition, Reason: "NO_CELLS", Message: "the store of this server keeps no schedules"}
	}
	return s.node.Serving()
}

// Get returns a schedule. With an empty topic every topic is searched.
func (s *Schedules) Get(ctx context.Context, topic, name string) (Status, error) {
	at, e := s.find(ctx, topic, name)
	if e != nil {
		return Status{}, e
	}
	return s.status(ctx, at), nil
}

func (s *Schedules) status(ctx context.Context, at *located) Status {
	return statusOf(at.topic.Name, at.Schedule, at.table, s.node.Clocks().NowAt(at.shard), s.excluded(ctx, at))
}

// find looks for a schedule in one topic, or in all.
func (s *Schedules) find(ctx context.Context, topic, name string) (*located, *problem.Error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if err := checkName("name", name); err != nil {
		return nil, err
	}
	topics, e := s.topics(ctx, topic)
	if e != nil {
		return nil, e
	}
	var hit *located
	for i := range topics {
		at, e := s.read(ctx, &topics[i], name)
		switch {
		case e != nil:
			return nil, e
		case at == nil:
		case hit != nil:
			return nil, &problem.Error{Kind: problem.Precondition, Reason: "AMBIGUOUS_NAME", Field: "topic",
				Message: "schedules of this name are in topics " + hit.topic.Name + " and " + at.topic.Name + "; name one"}
		default:
			hit = at
		}
	}
	if hit == nil {
		return nil, noSchedule(name)
	}
	return hit, nil
}

// read returns a schedule of a topic; nil when there is none. One that moves, because the
// topic got other shards, is looked for in the order in which it goes, so that it cannot
// pass by.
func (s *Schedules) read(ctx context.Context, topic *store.Topic, name string) (*located, *problem.Error) {
	shards := schedule.Shards(topic, name)
	for _, former := range slices.Backward(shards[1:]) {
		at, err := s.readIn(ctx, topic, former, name)
		if at != nil || err != nil {
			return at, err
		}
		if err := s.passing(ctx, former, store.OutBox, name); err != nil {
			return nil, err
		}
	}
	if len(shards) > 1 {
		if err := s.passing(ctx, shards[0], store.InBox, name); err != nil {
			return nil, err
		}
	}
	return s.readIn(ctx, topic, shards[0], name)
}

func (s *Schedules) readIn(ctx context.Context, topic *store.Topic, shard store.Shard, name string) (*located, *problem.Error) {
	from := s.cells.Server(ctx, shard)
	cells, err := s.cells.Cells(ctx, shard, []store.CellID{schedule.CellID(name)})
	if err != nil {
		return nil, problem.FromStore(err)
	}
	if cells[0].Version == 0 {
		return nil, nil
	}
	at, err := locatedIn(topic, shard, cells[0])
	if err != nil {
		return nil, problem.FromStore(err)
	}
	at.from = from
	return at, nil
}

// parcelsRead is how many parcels are looked through at a time.
const parcelsRead = 256

// passing returns an error while a schedule lies in a box, on its way to another shard.
func (s *Schedules) passing(ctx context.Context, shard store.Shard, box store.Box, name string) *problem.Error {
	for after := int64(0); ; {
		parcels, err := s.cells.Parcels(ctx, shard, box, after, parcelsRead)
		if err != nil {
			return problem.FromStore(err)
		}
		for i := range parcels {
			if after = parcels[i].Number; parcels[i].To == schedule.CellID(name) && parcels[i].Ended == nil {
				return problem.FromStore(store.ErrFenced)
			}
		}
		if len(parcels) == 0 {
			return nil
		}
	}
}

func locatedIn(topic *store.Topic, shard store.Shard, cell store.Cell) (*located, error) {
	read, err := schedule.FromCell(cell)
	if err != nil {
		return nil, err
	}
	table, err := read.Table()
	return &located{Schedule: read, topic: topic, shard: shard, cell: cell, table: table}, err
}

// excluded says what calendars leave out; nil: nothing. Where they cannot be read a schedule
// is shown without them; what is decided, see step, waits.
func (s *Schedules) excluded(ctx context.Context, at *located) func(time.Time) bool {
	if len(at.Calendars) == 0 {
		return nil
	}
	known, err := s.node.Calendars().Fresh(ctx)
	if err != nil {
		return nil
	}
	return known.Excluded(at.Schedule, at.table.Zone())
}
