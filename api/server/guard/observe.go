package guard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	// sayAgain is how long a refusal of a kind is not logged again.
	sayAgain = time.Minute
	// manyKinds is how many kinds are told apart.
	manyKinds = 1024
)

// Observer tells of calls that would be refused, while callers may leave out who they are. Nothing
// is refused then, and handlers see no principal: they answer as without authentication.
type Observer struct {
	log   *slog.Logger
	count func(reason string)

	mu   sync.Mutex
	said map[refusal]time.Time // guarded by mu
}

// refusal is a kind of calls that would be refused.
type refusal struct{ caller, method, reason string }

// NewObserver logs the first of a kind in a minute, and counts all.
func NewObserver(log *slog.Logger, count func(reason string)) *Observer {
	return &Observer{log: log, count: count, said: make(map[refusal]time.Time)}
}

// tell notes a call that would be refused. p is nil when nobody knows who calls.
func (o *Observer) tell(ctx context.Context, p *auth.Principal, method string, e *problem.Error) {
	o.count(e.Reason)
	kind := refusal{method: method, reason: e.Reason}
	if p != nil {
		kind.caller = p.Kind.String() + ":" + p.Name
	}
	if !o.first(kind, time.Now()) {
		return
	}
	from, _ := auth.OriginOf(withOrigin(ctx))
	o.log.WarnContext(ctx, "call would be refused", "method", method, "reason", e.Reason, "caller", kind.caller, "addr", from.Addr, "err", e.Message)
}

func (o *Observer) first(kind refusal, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if said, known := o.said[kind]; known && now.Sub(said) < sayAgain {
		return false
	}
	if len(o.said) >= manyKinds {
		clear(o.said)
	}
	o.said[kind] = now
	return true
}

// Observe makes the guard let everything through and tell of what it would refuse.
func (g *Guard) Observe(o *Observer) { g.observer = o }

// observeUnary tells what the rules say of a call, and returns the context of its handler.
func (g *Guard) observeUnary(ctx context.Context, rule *auth.Rule, request any) context.Context {
	s, e := g.who(ctx, rule.Method)
	if e != nil {
		g.observer.tell(ctx, nil, rule.Method, e)
		return ctx
	}
	entered, p, e := g.enter(ctx, s.Principal)
	if e == nil {
		e = wouldRefuse(p, rule, request)
		ctx = entered
	}
	if e != nil {
		g.observer.tell(ctx, s.Principal, rule.Method, e)
	}
	if rule.Where == auth.Anyone { // such as WhoAmI
		return auth.With(ctx, s.Principal)
	}
	return ctx
}

// wouldRefuse says why a principal may not make a call, or an item of it.
func wouldRefuse(p *auth.Principal, rule *auth.Rule, request any) *problem.Error {
	if topic := topicOf(rule, request); !rule.Allow(p, topic) {
		return denied(rule.Method, topic)
	}
	for _, topic := range enqueued(request) {
		if !p.Allow(auth.Enqueue, topic) {
			return denied(rule.Method, topic)
		}
	}
	return nil
}

// enqueued are the topics in which a request makes tasks, item by item.
func enqueued(request any) (topics []string) {
	switch r := request.(type) {
	case interface {
		GetTasks() []*ddqv1.EnqueueRequest
	}:
		for _, t := range r.GetTasks() {
			topics = append(topics, t.GetTopic())
		}
	case *ddqv1.PutScheduleRequest:
		topics = append(topics, r.GetSchedule().GetTopic())
	case *ddqv1.PutSchedulesRequest:
		for _, s := range r.GetSchedules() {
			topics = append(topics, s.GetSchedule().GetTopic())
		}
	case *ddqv1.SubmitWorkflowsRequest:
		for _, w := range r.GetWorkflows() {
			topics = append(topics, w.GetTopic())
		}
	}
	return topics
}

// observeStream is observeUnary for a stream, whose messages are looked at as they come.
func (g *Guard) observeStream(stream grpc.ServerStream, rule *auth.Rule) grpc.ServerStream {
	s, e := g.who(stream.Context(), rule.Method)
	if e != nil {
		g.observer.tell(stream.Context(), nil, rule.Method, e)
		return stream
	}
	ctx, p, e := g.enter(stream.Context(), s.Principal)
	if e != nil {
		g.observer.tell(stream.Context(), s.Principal, rule.Method, e)
		return stream
	}
	return &observed{ServerStream: stream, guard: g, ctx: ctx, principal: p, rule: rule, first: true}
}

// observed is a stream that nothing is refused on.
type observed struct {
	grpc.ServerStream
	guard     *Guard
	ctx       context.Context
	principal *auth.Principal
	rule      *auth.Rule
	first     bool // no message was received yet
}

func (o *observed) Context() context.Context { return o.ctx }

// RecvMsg receives a message, whatever is in it.
func (o *observed) RecvMsg(m any) error {
	if err := o.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	each := o.rule.Where == auth.Each
	if !o.first && !each {
		return nil
	}
	o.first = false
	if e := wouldRefuse(o.principal, o.rule, m); e != nil {
		o.guard.observer.tell(o.Context(), o.principal, o.rule.Method, e)
	}
	return nil
}
