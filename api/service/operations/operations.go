package operations

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const (
	kind        = "operation"
	atOnce      = 4    // run at a node at a time
	mostWaiting = 100  // at a node, with those that run
	mostKept    = 1000 // of all nodes, those that have ended first forgotten first
	beat        = time.Second
	lostAfter   = 15 * time.Second // without a word of its node
	lastWords   = 10 * time.Second // to write how it ended
	changes     = 5                // tries of a change that others make, too

	// MaxRate is the most tasks a second that may be asked for.
	MaxRate = 100_000
	// MaxPage is the most operations of a page.
	MaxPage = 1000
)

// Operations are those of all nodes. It owns a goroutine or two for each that runs here, until Stop.
type Operations struct {
	registry store.Registry
	node     string
	now      func() store.Millis
	log      *slog.Logger
	most     int // that are kept

	room chan struct{} // has a value for each that runs
	ctx  context.Context
	end  context.CancelCauseFunc
	all  sync.WaitGroup

	mu   sync.Mutex
	here int  // run or wait at this node; guarded by mu
	over bool // Stop was called; guarded by mu
}

// New knows those that the registry has. now is the store's clock.
func New(registry store.Registry, node string, now func() store.Millis, log *slog.Logger) *Operations {
	s := &Operations{registry: registry, node: node, now: now, log: log, most: mostKept, room: make(chan struct{}, atOnce)}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	return s
}

// Why an operation does not go on.
var (
	errStopped  = errors.New("a call asked the operation to stop")
	errNodeGone = errors.New("the node stops")
)

// Stop breaks off what runs here, and waits for it. It may be called twice.
func (s *Operations) Stop() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.end(errNodeGone)
	s.all.Wait()
}

// Spec is what an operation is to do.
type Spec struct {
	Topic   string
	Request []byte
	By      string
	Rate    int // tasks a second at most; 0: as many as it goes
	Act     Act
}

// Start has an operation run here, and returns it as soon as it is written down.
func (s *Operations) Start(ctx context.Context, spec Spec) (*Operation, error) {
	if spec.Rate < 0 || spec.Rate > MaxRate {
		return nil, problem.BadField("rate_per_s", "OUT_OF_RANGE_FIELD", "rate_per_s must be 0 to %d", MaxRate)
	}
	if e := s.enter(); e != nil {
		return nil, e
	}
	o, err := s.writeDown(ctx, &spec)
	if err != nil {
		s.leave()
		return nil, problem.AsError(err)
	}
	started := *o
	go func() { // ends with its context, and Stop waits for it
		defer s.leave()
		newRun(s, o).run(&spec)
	}()
	return &started, nil
}

// enter takes a place of those that this node has.
func (s *Operations) enter() *problem.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return problem.Draining()
	case s.here >= mostWaiting:
		return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_OPERATIONS", Message: "this node has 100 operations that have not ended", RetryAfter: time.Second}
	}
	s.here++
	s.all.Add(1)
	return nil
}

func (s *Operations) leave() {
	s.mu.Lock()
	s.here--
	s.mu.Unlock()
	s.all.Done()
}

// writeDown makes the record of a new operation, and room for it.
func (s *Operations) writeDown(ctx context.Context, spec *Spec) (*Operation, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	now := s.now()
	o := &Operation{
		ID: id.String(), Topic: spec.Topic, Request: spec.Request, By: spec.By, Node: s.node,
		State: Waiting, Created: now, Seen: now,
	}
	if err := s.forget(ctx); err != nil {
		return nil, err
	}
	return o, s.write(ctx, o)
}

// forget deletes the oldest ones that have ended, where there are more than are kept.
func (s *Operations) forget(ctx context.Context) error {
	all, err := s.read(ctx)
	if err != nil {
		return err
	}
	surplus := len(all) - s.most + 1
	for _, o := range all {
		if surplus <= 0 {
			break
		}
		if !o.State.Ended() {
			continue
		}
		if err := s.registry.DeleteRecord(ctx, kind, o.ID, o.version); err != nil && !errors.Is(err, store.ErrVersion) {
			return err
		}
		surplus--
	}
	return nil
}

// write stores o as it is, and its version.
func (s *Operations) write(ctx context.Context, o *Operation) error {
	r, err := o.record()
	if err != nil {
		return err
	}
	version, err := s.registry.PutRecord(ctx, r)
	if err == nil {
		o.version = version
	}
	return err
}

// read returns all that there are, the oldest first, as they are to be shown.
func (s *Operations) read(ctx context.Context) (all []*Operation, err error) {
	records, _, err := s.registry.Records(ctx, kind)
	if err != nil {
		return nil, err
	}
	now := s.now()
	for i := range records {
		o, err := read(&records[i])
		if err != nil {
			s.log.Warn("the record of an operation cannot be read", "id", records[i].Name, "err", err)
			continue
		}
		if o.lost(now) {
			o.State, o.Ended = BrokenOff, o.Seen
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *Operation) int { return cmp.Compare(a.ID, b.ID) }) // ids rise with time
	return all, nil
}

// Get returns an operation of a topic.
func (s *Operations) Get(ctx context.Context, topic, id string) (*Operation, error) {
	all, err := s.read(ctx)
	if err != nil {
		return nil, problem.AsError(err)
	}
	for _, o := range all {
		if o.ID == id && o.Topic == topic {
			return o, nil
		}
	}
	return nil, &problem.Error{Kind: problem.NotFound, Reason: "NO_OPERATION", Message: "the topic has no such operation; of those that have ended the last 1,000 are kept"}
}

// List returns operations of a topic, the newest first, older than one of that id.
func (s *Operations) List(ctx context.Context, topic string, size int, before string) (page []*Operation, more bool, err error) {
	all, err := s.read(ctx)
	if err != nil {
		return nil, false, problem.AsError(err)
	}
	for _, o := range slices.Backward(all) {
		if o.Topic != topic || before != "" && o.ID >= before {
			continue
		}
		if len(page) == size {
			return page, true, nil
		}
		page = append(page, o)
	}
	return page, false, nil
}

// Unfinished returns the mark of the last operation about everything there is, if that has not come to its end.
// It refuses while that runs.
func (s *Operations) Unfinished(ctx context.Context) (mark string, err error) {
	last, _, err := s.List(ctx, "", 1, "")
	if err != nil || len(last) == 0 || last[0].State == Done {
		return "", err
	}
	if o := last[0]; !o.State.Ended() {
		return "", &problem.Error{Kind: problem.Precondition, Reason: "OPERATION_RUNS", Message: "operation " + o.ID + " runs, at node " + o.Node}
	}
	return last[0].Mark, nil
}

// Ask asks an operation to stop, wherever it runs, which takes a second or two. One that has ended stays
// as it is.
func (s *Operations) Ask(ctx context.Context, topic, id string) (*Operation, error) {
	for range changes {
		o, err := s.Get(ctx, topic, id)
		if err != nil || o.State.Ended() || o.Stopping {
			return o, err
		}
		o.Stopping = true
		if err = s.write(ctx, o); err == nil {
			return o, nil
		}
		if !errors.Is(err, store.ErrVersion) {
			return nil, problem.AsError(err)
		}
	}
	return nil, problem.AsError(store.ErrUnavailable)
}
