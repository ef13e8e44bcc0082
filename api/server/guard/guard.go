package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/requestid"
)

// Guard stands before every handler while callers have to say who they are. It asks once for
// each unary call and once for each stream who calls, and checks the rule of the method
// before anything is looked up. What a handler finds in its context is the principal.
type Guard struct {
	access *access.Access
	audit  *audit.Log // of what is refused; nil: none
	rules  *auth.Rules

	observer *Observer // nil: what is not allowed is refused
}

// New returns a guard that asks access, which may be nil: then nobody is asked. It writes down
// whom it turned away, where there is a log for that.
func New(access *access.Access, log *audit.Log) *Guard { return &Guard{access: access, audit: log} }

// Audited reports whether calls of a method are written down.
func (g *Guard) Audited(method string) bool {
	rule := g.rules.Of(method)
	return rule != nil && rule.Audited()
}

// refuse writes a refusal down, and returns it.
func (g *Guard) refuse(ctx context.Context, method string, e *problem.Error) error {
	if g.audit == nil {
		return e
	}
	id, err := requestid.Name(ctx, e)
	g.audit.Refused(ctx, &audit.Call{Method: method, ID: id}, e.Reason)
	return err
}

// Learn panics when a method has no rule, or a rule no method: such a server must not start.
func (g *Guard) Learn(services map[string]grpc.ServiceInfo) {
	var methods []string
	for service, info := range services {
		for _, m := range info.Methods {
			methods = append(methods, "/"+service+"/"+m.Name)
		}
	}
	rules, err := auth.RulesFor(methods)
	if err != nil {
		panic(err)
	}
	for _, method := range methods {
		if err := checkPlace(rules.Of(method)); err != nil {
			panic(err)
		}
	}
	g.rules = rules
}

// On reports whether callers are asked. Otherwise nothing of this stands before a handler.
func (g *Guard) On() bool { return g.access != nil && g.access.On() }

// Refuses reports whether callers that do not say who they are get no further than Public calls.
func (g *Guard) Refuses() bool { return g.On() && g.observer == nil }

// Ask asks who makes a unary call before its request is received, and reports whether that is to be received: the
// others are refused by Unary, with the context that Ask returns.
func (g *Guard) Ask(ctx context.Context, method string) (asked context.Context, receive bool) {
	rule := g.rules.Of(method)
	if !g.Refuses() || rule == nil || rule.Where == auth.Public {
		return ctx, true
	}
	var a answer
	a.session, a.refused = g.who(ctx, method)
	return context.WithValue(ctx, answerKey{}, &a), a.refused == nil
}

// answer is what Ask has found.
type answer struct {
	session *access.Session
	refused *problem.Error
}

type answerKey struct{}

// Authorize says why a caller may not make a call about all topics, of all namespaces; nil when it may.
func (g *Guard) Authorize(ctx context.Context, authorization []string, method string) *problem.Error {
	if !g.On() {
		return nil
	}
	s, e := g.access.Who(ctx, authorization, method)
	if e == nil && !g.mayEverywhere(s.Principal, method) {
		e = denied(method, "")
	}
	if e != nil && g.observer != nil {
		g.observer.tell(ctx, nil, method, e)
		return nil
	}
	return e
}

// mayEverywhere reports whether p may make a call about all topics that there are. While there is no namespace but
// the default one, those in it are all.
func (g *Guard) mayEverywhere(p *auth.Principal, method string) bool {
	rule := g.rules.Of(method)
	if g.access.Namespaces.Several() && !p.Grants.AllowFleet(rule.Verbs) {
		return false
	}
	return rule.Allow(p, "")
}

// checkPlace says why requests of a method have no topic where its rule looks for one.
func checkPlace(r *auth.Rule) error {
	fits := true
	switch r.Where {
	case auth.Topic, auth.Name, auth.Hello:
		_, fits = topicIn(r.Where, requestOf(r.Method))
	}
	if !fits {
		return fmt.Errorf("requests of %s have no topic where the rule of the method looks for it", r.Method)
	}
	return nil
}

// requestOf is an empty request of a method; nil when it is not known.
func requestOf(method string) any {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
	if err != nil {
		return nil
	}
	return t.New().Interface()
}

// topicIn is the topic of a request, if it has one there.
func topicIn(where auth.Where, request any) (topic string, there bool) {
	switch m := request.(type) {
	case interface{ GetHello() *ddqv1.Hello }:
		return m.GetHello().GetTopic(), where == auth.Hello
	case *ddqv1.PreviewScheduleRequest:
		return cmp.Or(m.GetSchedule().GetTopic(), m.GetExisting().GetTopic()), where == auth.Topic
	case interface{ GetSchedule() *ddqv1.Schedule }:
		return m.GetSchedule().GetTopic(), where == auth.Topic
	case *ddqv1.SubmitWorkflowRequest:
		return m.GetWorkflow().GetTopic(), where == auth.Topic
	case interface{ GetTopic() string }:
		return m.GetTopic(), where == auth.Topic || where == auth.Shown
	case interface{ GetName() string }:
		return m.GetName(), where == auth.Name
	}
	return "", false
}

// topicOf is the topic of a request; empty when it has none.
func topicOf(r *auth.Rule, request any) string {
	topic, there := topicIn(r.Where, request)
	if !there {
		return ""
	}
	return topic
}

// who returns who calls, by the header that the call brings. A call within the process may
// bring its caller instead.
func (g *Guard) who(ctx context.Context, method string) (*access.Session, *problem.Error) {
	s := access.Caller(ctx)
	if a, asked := ctx.Value(answerKey{}).(*answer); asked {
		if a.refused != nil {
			return nil, a.refused
		}
		s = a.session
	}
	if s != nil {
		if !s.Valid(time.Now()) {
			return nil, access.Ended()
		}
		return s, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return g.access.Who(withOrigin(ctx), md.Get("authorization"), method)
}

// Unary asks about a unary call.
func (g *Guard) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	rule := g.rules.Of(info.FullMethod)
	if rule == nil {
		return nil, denied(info.FullMethod, "")
	}
	if rule.Where == auth.Public {
		return handler(ctx, request)
	}
	if g.observer != nil {
		return handler(g.observeUnary(ctx, rule, request), request)
	}
	s, e := g.who(ctx, info.FullMethod)
	if e != nil {
		return nil, g.refuse(ctx, info.FullMethod, e)
	}
	if e := take(s, rule, request); e != nil {
		return nil, e
	}
	ctx, p, e := g.enter(ctx, s.Principal)
	if ctx = auth.With(ctx, p); e != nil {
		return nil, g.refuse(ctx, info.FullMethod, e)
	}
	if topic := topicOf(rule, request); !rule.Allow(p, topic) {
		return nil, g.refuse(ctx, info.FullMethod, denied(info.FullMethod, topic))
	}
	reply, err := handler(ctx, request)
	if err == nil {
		hide(p, rule, reply)
	}
	return reply, err
}

// take counts a call and the payloads in its request, and says when they are too many. Settling never is: it
// ends what others wait for.
func take(s *access.Session, rule *auth.Rule, request any) *problem.Error {
	if rule.Settles() {
		return nil
	}
	now := time.Now()
	if e := s.Take(now); e != nil || !s.Weighs() {
		return e
	}
	return s.TakeBytes(now, payloadBytes(request))
}

// denied says the same whether the topic is there or not.
func denied(method, topic string) *problem.Error {
	e := &problem.Error{Kind: problem.Denied, Reason: "NOT_ALLOWED", Message: "not allowed: " + method[strings.LastIndexByte(method, '/')+1:]}
	if topic != "" {
		e.Field = "topic"
		e.Message += fmt.Sprintf(" on topic %q", topic)
	}
	return e
}

// Stream asks about a stream.
func (g *Guard) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	rule := g.rules.Of(info.FullMethod)
	if rule == nil {
		return denied(info.FullMethod, "")
	}
	if rule.Where == auth.Public {
		return handler(srv, stream)
	}
	if g.observer != nil {
		return handler(srv, g.observeStream(stream, rule))
	}
	s, e := g.who(stream.Context(), info.FullMethod)
	if e != nil {
		return g.refuse(stream.Context(), info.FullMethod, e)
	}
	if e := take(s, rule, nil); e != nil {
		return e
	}
	later := rule.Where == auth.Topic || rule.Where == auth.Hello // what it is about, its first message says
	ctx, p, e := g.enter(stream.Context(), s.Principal)
	ctx, cancel := context.WithCancel(auth.With(ctx, p))
	if e != nil {
		defer cancel()
		return g.refuse(ctx, info.FullMethod, e)
	}
	if !later && !rule.Allow(p, "") {
		defer cancel()
		return g.refuse(ctx, info.FullMethod, denied(info.FullMethod, ""))
	}
	defer cancel()
	defer context.AfterFunc(s.Gone(), cancel)()
	if !s.Expires.IsZero() {
		defer time.AfterFunc(time.Until(s.Expires), cancel).Stop()
	}
	err := handler(srv, &guarded{ServerStream: stream, guard: g, ctx: ctx, session: s, principal: p, rule: rule, first: later || rule.Where == auth.Shown})
	if !s.Valid(time.Now()) && stream.Context().Err() == nil {
		return access.Ended()
	}
	return err
}

// guarded is a stream of a principal. Its context ends with the principal's credential.
type guarded struct {
	grpc.ServerStream
	guard   *Guard
	ctx     context.Context
	session *access.Session
	rule    *auth.Rule

	principal *auth.Principal // of the session, in the namespace of the stream

	first bool // no message was received that says what the stream is about
	begun bool // a message was received
}

func (g *guarded) Context() context.Context { return g.ctx }

// RecvMsg looks at a flag for each message, and at the first one for its topic.
func (g *guarded) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := g.await(m); err != nil && g.session.Gone().Err() == nil {
		return err
	}
	g.begun = true
	if g.session.Gone().Err() != nil {
		return access.Ended()
	}
	if !g.first {
		return nil
	}
	g.first = false
	topic := topicOf(g.rule, m)
	if !g.rule.Allow(g.principal, topic) {
		return g.guard.refuse(g.ctx, g.rule.Method, denied(g.rule.Method, topic))
	}
	return nil
}

// SendMsg takes out of listings what the principal may not see.
func (g *guarded) SendMsg(m any) error {
	if g.rule.Where == auth.Shown {
		hide(g.principal, g.rule, m)
	}
	return g.ServerStream.SendMsg(m)
}

// await waits until a message and the payloads in it are not too many. The call was counted for the first one.
func (g *guarded) await(m any) error {
	if g.rule.Settles() {
		return nil
	}
	if g.begun {
		if err := g.session.Await(g.ctx); err != nil {
			return err
		}
	}
	if !g.session.Weighs() {
		return nil
	}
	return g.session.AwaitBytes(g.ctx, payloadBytes(m))
}

// AllowNode says why a caller may not be the node that it says it is. Without
// authentication anybody may be, as far as this goes.
func AllowNode(ctx context.Context, name string) *problem.Error {
	p := auth.From(ctx)
	switch {
	case p == nil, name != "" && p.MayBe(name), name == "" && p.Kind != auth.KindNode:
		return nil
	}
	return notANode("node", "the credentials are not those of node %q", name)
}

// Enqueue reports whether the caller of a batch may make tasks in each of the topics that it
// is asked for. Topics come in runs, so the last one is remembered.
type Enqueue struct {
	Principal *auth.Principal // nil: everybody may
	last      string
	allowed   bool
}

// Check says why the caller may not make a task of a topic.
func (m *Enqueue) Check(topic string) *problem.Error {
	if m.Principal == nil {
		return nil
	}
	if topic != m.last || !m.allowed {
		m.last, m.allowed = topic, m.Principal.Allow(auth.Enqueue, topic)
	}
	if !m.allowed {
		return denied(ddqv1.DelayQueueService_Enqueue_FullMethodName, topic)
	}
	return nil
}

// AllowPut says why a caller may not put a schedule, which makes tasks from then on.
func AllowPut(ctx context.Context, topic string) *problem.Error {
	p := auth.From(ctx)
	if p == nil || p.Allow(auth.Operate, topic) && p.Allow(auth.Enqueue, topic) {
		return nil
	}
	return denied(ddqv1.ScheduleService_PutSchedule_FullMethodName, topic)
}

// AllowAudience says why a caller may not name an audience in a request about a schedule. An audience belongs to no
// topic: whoever has the verb on the schedule's topic alone would reach its recipients by that.
func AllowAudience(ctx context.Context, method string, verb auth.Verbs, target *ddqv1.AudienceTarget) *problem.Error {
	p := auth.From(ctx)
	if p == nil || target == nil || p.Grants.AllowAll(verb, p.Namespace) {
		return nil
	}
	e := denied(method, "")
	e.Field = "schedule.audience"
	e.Message += fmt.Sprintf(" with an audience, which needs %v on all topics", verb)
	return e
}

// AllowFleet says why a caller may not make a call about everything there is.
func AllowFleet(ctx context.Context, method string) *problem.Error {
	if p := auth.From(ctx); p != nil && !p.Grants.AllowFleet(auth.Admin) {
		return denied(method, "")
	}
	return nil
}

// hide takes out of an answer what the principal may not see.
func hide(p *auth.Principal, rule *auth.Rule, reply any) {
	switch r := reply.(type) {
	case *ddqv1.ListTopicsResponse:
		r.Topics = slices.DeleteFunc(r.Topics, func(t *ddqv1.Topic) bool { return !p.Allow(rule.Verbs, t.GetName()) })
	case *ddqv1.ListShardsResponse:
		r.Shards = slices.DeleteFunc(r.Shards, func(s *ddqv1.Shard) bool { return !p.Allow(rule.Verbs, s.GetTopic()) })
	case *ddqv1.ListNodesResponse:
		for _, n := range r.Nodes {
			if logs := n.GetLogs(); logs != nil {
				logs.Topics = slices.DeleteFunc(logs.Topics, func(t *ddqv1.TopicLogs) bool { return !p.Allow(auth.Read, t.GetTopic()) })
			}
		}
	case *ddqv1.GetOverviewResponse:
		r.Topics = slices.DeleteFunc(r.Topics, func(t *ddqv1.TopicOverview) bool { return !p.Allow(rule.Verbs, t.GetTopic().GetName()) })
	case *ddqv1.WatchOverviewResponse:
		hide(p, rule, r.GetOverview())
	case *ddqv1.ListWorkersResponse:
		r.Workers = slices.DeleteFunc(r.Workers, func(w *ddqv1.Worker) bool { return !p.Allow(rule.Verbs, w.GetTopic()) })
	case *ddqv1.ListSchedulesResponse:
		r.Schedules = slices.DeleteFunc(r.Schedules, func(s *ddqv1.GetScheduleResponse) bool {
			return !p.Allow(rule.Verbs, s.GetSchedule().GetTopic())
		})
		for _, s := range r.Schedules {
			maskSchedule(p, s.GetSchedule())
		}
	case interface{ GetSchedule() *ddqv1.Schedule }:
		maskSchedule(p, r.GetSchedule())
	case *ddqv1.ListWorkflowsResponse:
		r.Workflows = slices.DeleteFunc(r.Workflows, func(w *ddqv1.WorkflowStatus) bool { return !p.Allow(rule.Verbs, w.GetTopic()) })
	case *ddqv1.GetTaskResponse:
		maskTasks(p, auth.Payload, r.GetTask())
	case *ddqv1.ListTasksResponse:
		maskTasks(p, auth.Payload, r.GetTasks()...)
	case *ddqv1.ListDeadLettersResponse:
		maskTasks(p, auth.Payload, r.GetTasks()...)
	case *ddqv1.WaitTaskResponse:
		if t := r.GetTask(); p.Allow(auth.Enqueue, t.GetTopic()) { // whoever enqueues sees what came of it
			result := t.GetResult()
			maskTasks(p, auth.Payload, t)
			if t != nil {
				t.Result = result
			}
		} else {
			maskTasks(p, auth.Payload, t)
		}
	case interface{ GetStatus() *ddqv1.WorkflowStatus }:
		maskWorkflow(p, r)
	}
}

// maskSchedule empties the payload that runs of a schedule have, or leaves out their workflow, and
// says so: put back as it is, that would be gone.
func maskSchedule(p *auth.Principal, s *ddqv1.Schedule) {
	switch {
	case s == nil || p.Allow(auth.Payload, s.GetTopic()):
	case s.GetTask() != nil:
		s.GetTask().Payload, s.Masked = nil, true
	case s.GetWorkflow() != nil:
		s.Run, s.Masked = nil, true
	}
}

// maskTasks empties payloads, results and journals of tasks whose topic does not let a principal see them.
func maskTasks(p *auth.Principal, need auth.Verbs, tasks ...*ddqv1.Task) {
	for _, t := range tasks {
		if t != nil && !p.Allow(need, t.GetTopic()) {
			t.Payload, t.Result, t.RecipientData, t.Masked = nil, nil, nil, true
			if t.Step != nil {
				t.Step.Input = nil
			}
			for _, in := range t.Inputs {
				in.Result = nil
			}
			for _, e := range t.Journal {
				e.Value = nil
			}
		}
	}
}

// maskWorkflow empties what steps of a workflow get and return, where the principal may not see
// the payloads of its topic. Whoever enqueues sees what came of the workflow.
func maskWorkflow(p *auth.Principal, reply interface{ GetStatus() *ddqv1.WorkflowStatus }) {
	s := reply.GetStatus()
	if s == nil || p.Allow(auth.Payload, s.GetTopic()) {
		return
	}
	if _, waited := reply.(*ddqv1.WaitWorkflowResponse); !waited || !p.Allow(auth.Enqueue, s.GetTopic()) {
		s.Result, s.Masked = nil, true
	}
	if r, shown := reply.(*ddqv1.GetWorkflowResponse); shown {
		for _, step := range r.Steps {
			step.Result = nil
		}
		r.Workflow = nil
	}
}
