package tap

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/ledger"
)

// refuses reports whether a reason of the protocol means that nothing was done. The
// others, and errors without one, leave it open.
func refuses(reason string) bool {
	switch reason {
	case "NO_TASK", "NO_TOPIC", "TASK_RUNNING", "TASK_FINISHED", "HOLD_LOST", "TASK_EXISTS", "ENQUEUE_PAUSED", "VERSION_MISMATCH", "KEY_TAKEN",
		"TASK_NOT_RUNNING", "TASK_GONE", "RUN_OPEN", "BUFFER_FULL", "SCHEDULE_FINISHED", "NO_SCHEDULE", "NO_AUDIENCE", "NEVER_FIRES", "STEP_DONE",
		"DRAINING", "STARTING", "STORE_DOWN", "STORE_FULL", "NOT_OWNER":
		return true
	}
	return false
}

// NotConnected is the reason of calls that never left.
const NotConnected = "NOT_CONNECTED"

// Outcome sorts the error of a call: the server refused and did nothing, or nobody knows.
func Outcome(err error) (ledger.Result, string) {
	var e *client.Error
	if !errors.As(err, &e) {
		return ledger.Unknown, err.Error()
	}
	if refuses(e.Reason) {
		return ledger.Refused, e.Reason
	}
	if e.Code == codes.Unavailable && strings.Contains(e.Message, "while dialing") {
		return ledger.Refused, NotConnected // gRPC's words for a call that never left
	}
	return ledger.Unknown, fmt.Sprintf("%v: %s %s", e.Code, e.Reason, e.Message)
}

// Sum is the checksum of a payload, as ledgers have it.
func Sum(payload []byte) string { return fmt.Sprintf("%016x", xxhash.Sum64(payload)) }

// Log is what a tap writes to, such as a ledger.Writer.
type Log interface {
	Append(events ...ledger.Event)
	NextCall() uint64
}

// Conn is a connection that writes down what a worker of one topic receives and settles
// over it. It sits below the SDK, so that the ledger has what was on the wire. It is safe
// for concurrent use.
type Conn struct {
	grpc.ClientConnInterface
	*scribe
}

// New returns a tap on conn.
func New(conn grpc.ClientConnInterface, topic string, log Log) *Conn {
	return &Conn{conn, newScribe(topic, log)}
}

// scribe has the words of a ledger for what a worker of one topic receives and settles. It is
// safe for concurrent use.
type scribe struct {
	topic string
	log   Log

	mu    sync.Mutex
	names map[string]string // what the ledger calls tasks with an idempotency key, by id; guarded by mu
}

func newScribe(topic string, log Log) *scribe {
	return &scribe{topic: topic, log: log, names: map[string]string{}}
}

// name is what the ledger calls a task, whose key is empty when it has none or is not
// known here.
func (t *scribe) name(id, key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key != "" {
		t.names[id] = ledger.KeyTask(key)
	}
	if name := t.names[id]; name != "" {
		return name
	}
	return id
}

// NewStream taps every Subscribe stream.
func (t *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := t.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || method != ddqv1.DelayQueueService_Subscribe_FullMethodName {
		return s, err
	}
	return &tappedStream{ClientStream: s, Conn: t, asked: map[uint64][]ledger.Event{}}, nil
}

// Invoke taps checkpoints, and the nacks by which a worker gives back what came too late for a
// stream.
func (t *Conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	var call ledger.Event
	switch r := args.(type) {
	case *ddqv1.NackRequest:
		call = t.nacked(r.GetNack())
	case *ddqv1.CheckpointRequest:
		call = t.checkpoint(r.GetCheckpoint())
	default:
		return t.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	}
	t.log.Append(call)
	err := t.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	answer := answerTo(call)
	if a, ok := reply.(*ddqv1.CheckpointResponse); ok && a.GetAlready() {
		answer.Result = ledger.Already
	}
	if err != nil {
		answer.Result, answer.Reason = ledger.Unknown, status.Convert(err).Message()
	}
	t.log.Append(answer)
	return err
}

// event begins the call about a task.
func (t *scribe) event(op ledger.Op, id string, token []byte) ledger.Event {
	return ledger.Event{
		Kind: ledger.Call, Op: op, Call: t.log.NextCall(),
		Topic: t.topic, Task: t.name(id, ""), Token: hex.EncodeToString(token),
	}
}

func (t *scribe) nacked(n *ddqv1.Nack) ledger.Event {
	op := ledger.Nack
	if n.GetRelease() {
		op = ledger.Release
	}
	e := t.event(op, n.GetTaskId(), n.GetHoldToken())
	e.DelayMS, e.Final = n.GetDelayMs(), n.GetPermanent()
	return e
}

func (t *scribe) checkpoint(c *ddqv1.Checkpoint) ledger.Event {
	e := t.event(ledger.Checkpoint, c.GetTaskId(), c.GetHoldToken())
	e.Name = c.GetName()
	return e
}

// answerTo is the answer to a call that went well.
func answerTo(call ledger.Event) ledger.Event {
	call.Kind, call.Result = ledger.Answer, ledger.OK
	call.DelayMS, call.Final, call.Output, call.Next, call.Grow, call.Suspends = 0, false, "", nil, nil, false
	return call
}

// tappedStream is one Subscribe stream under observation.
type tappedStream struct {
	grpc.ClientStream
	*Conn

	own   sync.Mutex
	asked map[uint64][]ledger.Event // settlements without an answer, by sequence; guarded by own
}

// SendMsg writes down settlements before they are sent.
func (s *tappedStream) SendMsg(m any) error {
	if r, ok := m.(*ddqv1.SubscribeRequest); ok {
		s.settle(r)
	}
	return s.ClientStream.SendMsg(m)
}

func (s *tappedStream) settle(r *ddqv1.SubscribeRequest) {
	calls := s.settlements(r)
	if len(calls) == 0 {
		return
	}
	s.own.Lock()
	s.asked[r.GetSequence()] = calls
	s.own.Unlock()
	s.log.Append(calls...)
}

// settling is a message that has settlements.
type settling interface {
	GetAcks() []*ddqv1.Ack
	GetNacks() []*ddqv1.Nack
	GetExtends() []*ddqv1.Extend
	GetCheckpoints() []*ddqv1.Checkpoint
}

// settlements begins a call for each.
func (t *scribe) settlements(r settling) (calls []ledger.Event) {
	for _, a := range r.GetAcks() {
		e := t.event(ledger.Ack, a.GetTaskId(), a.GetHoldToken())
		e.Output = Sum(a.GetResult())
		for _, next := range a.GetEnqueue() {
			e.Next = append(e.Next, Sum(next.GetPayload()))
		}
		e.Grow, e.Suspends = grown(a.GetGrow()), a.GetGrow().GetSuspend()
		calls = append(calls, e)
	}
	for _, n := range r.GetNacks() {
		calls = append(calls, t.nacked(n))
	}
	for _, x := range r.GetExtends() {
		calls = append(calls, t.event(ledger.Extend, x.GetTaskId(), x.GetHoldToken()))
	}
	for _, c := range r.GetCheckpoints() {
		calls = append(calls, t.checkpoint(c))
	}
	return calls
}

// RecvMsg writes down deliveries and answers before the SDK sees them.
func (s *tappedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		s.broken(err)
		return err
	}
	r, ok := m.(*ddqv1.SubscribeResponse)
	if !ok {
		return nil
	}
	events := s.deliveries(r.GetDeliveries())
	for _, a := range r.GetSettled() {
		events = append(events, s.answers(a)...)
	}
	if len(events) > 0 {
		s.log.Append(events...)
	}
	return nil
}

// deliveries are what came in.
func (t *scribe) deliveries(all []*ddqv1.Delivery) (events []ledger.Event) {
	for _, d := range all {
		task := d.GetTask()
		e := ledger.Event{
			Kind: ledger.Delivered, Topic: t.topic, Task: t.name(task.GetId(), task.GetIdempotencyKey()), Attempt: int(task.GetRetryCount()) + 1,
			Token: hex.EncodeToString(d.GetHoldToken()), HoldMS: d.GetHoldMs(),
			Due: Millis(task.GetExecuteTime().AsTime()), Sum: Sum(task.GetPayload()), Version: task.GetVersion(),
		}
		if task.GetIdempotencyKey() != "" {
			e.ID = task.GetId()
		}
		if e.Schedule = task.GetSchedule(); e.Schedule != "" {
			e.Occurrence = Millis(task.GetOccurrenceTime().AsTime())
		}
		if e.Recipient = task.GetRecipient(); e.Recipient != "" {
			e.Created = Millis(task.GetCreatedAt().AsTime())
		}
		e.Making, e.Cause = Making(task), task.GetCause().GetId()
		events = append(events, e)
	}
	return events
}

// answers are what became of the settlements of one frame: those that are not named
// went well, or are still to be told where this is a part.
func (s *tappedStream) answers(a *ddqv1.Settled) []ledger.Event {
	named := s.named(a.GetResults())
	s.own.Lock()
	calls := s.asked[a.GetSequence()]
	delete(s.asked, a.GetSequence())
	if a.GetPart() {
		told := calls
		calls = nil
		var left []ledger.Event
		for _, call := range told {
			if named[call.Task+call.Token+call.Name] != nil {
				calls = append(calls, call)
			} else {
				left = append(left, call)
			}
		}
		s.asked[a.GetSequence()] = left
	}
	s.own.Unlock()
	return outcomes(calls, named)
}

// named are results by the task, the hold and the name that each is of, as a ledger has them.
func (t *scribe) named(results []*ddqv1.SettleResult) map[string]*ddqv1.SettleResult {
	named := map[string]*ddqv1.SettleResult{}
	for _, r := range results {
		named[t.name(r.GetTaskId(), "")+hex.EncodeToString(r.GetHoldToken())+r.GetName()] = r
	}
	return named
}

// outcomes are the answers to calls, of which those that are not named went well.
func outcomes(calls []ledger.Event, named map[string]*ddqv1.SettleResult) []ledger.Event {
	for i, call := range calls {
		e := answerTo(call)
		if r := named[call.Task+call.Token+call.Name]; r != nil {
			e.HoldMS = r.GetHoldMs()
			switch failure := r.GetError(); {
			case failure != nil && refuses(failure.GetReason()):
				e.Result, e.Reason = ledger.Refused, failure.GetReason()
			case failure != nil:
				e.Result, e.Reason = ledger.Unknown, codes.Code(failure.GetCode()).String()+" "+failure.GetReason()
			case r.GetAlready():
				e.Result = ledger.Already
			}
		}
		calls[i] = e
	}
	return calls
}

// broken writes down that the stream ended before everything was answered.
func (s *tappedStream) broken(err error) {
	s.own.Lock()
	defer s.own.Unlock()
	for _, calls := range s.asked {
		s.log.Append(unknown(calls, err.Error())...)
	}
	clear(s.asked)
}

// unknown are the answers to calls of which nobody knows what became.
func unknown(calls []ledger.Event, why string) []ledger.Event {
	for i, call := range calls {
		calls[i] = answerTo(call)
		calls[i].Result, calls[i].Reason = ledger.Unknown, why
	}
	return calls
}

// Millis is t in Unix milliseconds, 0 for no time.
func Millis(t time.Time) int64 {
	if t.IsZero() || t.Unix() == 0 {
		return 0
	}
	return t.UnixMilli()
}
