package audiences

import (
	"context"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/audience/access"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Store is the role of the store for audiences.
type Store interface {
	access.Store
	Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error)
	CellPage(ctx context.Context, s store.Shard, kind byte, cursor string, limit int) (cells []store.Cell, next string, err error)
	DropShard(ctx context.Context, s store.Shard) error
}

// Audiences is what is done with audiences. Its methods are safe for concurrent use, and
// return *problem.Error.
type Audiences struct {
	access.Access
	store   Store
	limits  Limits
	outside Outside
	turns   *turns
}

// Outside is what audiences ask of schedules, of topics and of their node.
type Outside struct {
	// Used returns a schedule that has an audience, and nothing when none does. nil: none
	// ever does.
	Used func(ctx context.Context, audience string) (schedule string, err error)
	// Topics returns all topics of the namespace of a call; nil: there are none.
	Topics func(ctx context.Context) ([]store.Topic, error)
	// Topic returns a topic as the store has it, or nil. nil: there are none.
	Topic func(ctx context.Context, name string) (*store.Topic, error)
	// Tell tells the owner of a shard that a call changed when its cells wake. It is a hint.
	Tell func(ctx context.Context, topic string, shard int)
	// Random is a number in [0, 1), of pauses. nil: that of math/rand.
	Random func() float64
}

// whole fills in what is not given.
func (o Outside) whole() Outside {
	if o.Used == nil {
		o.Used = func(context.Context, string) (string, error) { return "", nil }
	}
	if o.Topics == nil {
		o.Topics = func(context.Context) ([]store.Topic, error) { return nil, nil }
	}
	if o.Topic == nil {
		o.Topic = func(context.Context, string) (*store.Topic, error) { return nil, nil }
	}
	if o.Tell == nil {
		o.Tell = func(context.Context, string, int) {}
	}
	return o
}

// Limits are those of all audiences.
type Limits struct {
	Recipients int64 // of one audience; 0 means 50 million
	PageSize   int   // of listings; 0 means 1,000
}

const (
	maxRecipients = 50_000_000
	maxPage       = 1000
)

// New returns the use cases of audiences on a store.
func New(st Store, limits Limits, outside Outside) *Audiences {
	if limits.Recipients == 0 {
		limits.Recipients = maxRecipients
	}
	if limits.PageSize == 0 {
		limits.PageSize = maxPage
	}
	return &Audiences{Access: access.Access{Store: st, Random: outside.Random}, store: st, limits: limits, outside: outside.whole(), turns: newTurns()}
}

// ready refuses calls that cannot be carried out here.
func (s *Audiences) ready() error {
	if s == nil {
		return &problem.Error{Kind: problem.Precondition, Reason: "NO_CELLS", Message: "the store of this server keeps no audiences"}
	}
	return nil
}

// find returns an audience.
func (s *Audiences) find(ctx context.Context, name string) (*audience.Audience, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if err := checkName("name", name); err != nil {
		return nil, err
	}
	a, err := s.Record(ctx, name)
	switch {
	case err != nil:
		return nil, problem.AsError(err)
	case a.Ended:
		return nil, noAudience(name)
	}
	return a, nil
}
