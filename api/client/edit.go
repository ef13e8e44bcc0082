package client

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Change says what to change of a task that waits. What is nil stays as it is.
type Change struct {
	// IfVersion is the version that the task must have, see Snapshot.Version:
	// otherwise nothing is changed and the error is ErrVersion. Any when 0.
	IfVersion int64

	Payload    []byte            // replaces the payload; an empty one that is not nil clears it
	Attributes map[string]string // replace all attributes; an empty map clears them
	When       *When             // moves the due time

	Priority       *int
	FairnessKey    *string
	FairnessWeight *int

	MaxRetries        *int           // -1: the topic's
	VisibilityTimeout *time.Duration // 0: the topic's
	HandlerTimeout    *time.Duration // 0: the worker's
	Backoff           *Backoff       // the zero Backoff: the topic's

	// Expires, the zero time for never, or ExpireAfter, measured from the due time.
	Expires     *time.Time
	ExpireAfter time.Duration
}

// UpdateTask changes a task that no worker holds, in place, and returns its due time
// and version: a worker has it as it was before or as it is after. ErrPrecondition
// when a worker holds it or it is finished, ErrVersion when it has another version
// than asked for. Every topic is searched when topic is empty.
func (c *Tasks) UpdateTask(ctx context.Context, topic, id string, to Change) (Receipt, error) {
	if err := c.encodeEdit(ctx, topic, &to); err != nil {
		return Receipt{Topic: topic, ID: id}, err
	}
	request, e := to.request(topic, id)
	if e != nil {
		return Receipt{}, e
	}
	reply, err := call.Answer(ctx, c.do, to.safety(), c.queue.UpdateTask, request)
	return editReceipt(topic, id, reply, err)
}

// PromoteTask makes a task that no worker holds due now. ifVersion is the version
// that it must have, see Change.IfVersion. Every topic is searched when topic is empty.
func (c *Tasks) PromoteTask(ctx context.Context, topic, id string, ifVersion int64) (Receipt, error) {
	request := &ddqv1.PromoteTaskRequest{Topic: topic, Id: id, IfVersion: ifVersion}
	reply, err := call.Answer(ctx, c.do, call.Safety(ifVersion == 0), c.queue.PromoteTask, request)
	return editReceipt(topic, id, reply, err)
}

// When is a moment: Due, or Delay from now on the server's clock while Due is zero.
type When struct {
	Delay time.Duration
	Due   time.Time
}

// Reschedule moves the due time of a task that no worker holds. The receipt
// says where it was found and the due time as resolved. Every topic is
// searched when topic is empty.
func (c *Tasks) Reschedule(ctx context.Context, topic, id string, to When) (Receipt, error) {
	return c.RescheduleIf(ctx, topic, id, to, 0)
}

// RescheduleIf is Reschedule of a task that must have a version, see Change.IfVersion.
func (c *Tasks) RescheduleIf(ctx context.Context, topic, id string, to When, ifVersion int64) (Receipt, error) {
	request := &ddqv1.RescheduleTaskRequest{Topic: topic, Id: id, IfVersion: ifVersion}
	repeat := call.Safety(ifVersion == 0)
	if to.Due.IsZero() {
		request.When = &ddqv1.RescheduleTaskRequest_Delay{Delay: durationpb.New(to.Delay)}
		repeat = call.Once // a delay counts from when it is heard
	} else {
		request.When = &ddqv1.RescheduleTaskRequest_ExecuteTime{ExecuteTime: timestamppb.New(to.Due)}
	}
	reply, err := call.Answer(ctx, c.do, repeat, c.queue.RescheduleTask, request)
	return editReceipt(topic, id, reply, err)
}

// edited is the answer to an edit.
type edited interface {
	GetTopic() string
	GetExecuteTime() *timestamppb.Timestamp
	GetVersion() int64
}

// editReceipt is the receipt of an edit; of one that failed it has what was asked for.
func editReceipt(topic, id string, reply edited, err error) (Receipt, error) {
	if err != nil {
		return Receipt{Topic: topic, ID: id}, err
	}
	return Receipt{Topic: reply.GetTopic(), ID: id, Due: wire.Time(reply.GetExecuteTime()), Version: reply.GetVersion()}, nil
}

// safety says whether the change may be sent again: a delay counts from when it is
// heard, and a version is another one once the change was made.
func (c *Change) safety() call.Safety {
	return call.Safety(c.IfVersion == 0 && (c.When == nil || !c.When.Due.IsZero()))
}

// request writes down the change, and names what is in it.
func (c *Change) request(topic, id string) (*ddqv1.UpdateTaskRequest, *Error) {
	if c.Expires != nil && c.ExpireAfter != 0 {
		return nil, invalid("expire_after", "a task has an expiry or a time to expire after, not both")
	}
	r := &ddqv1.UpdateTaskRequest{Topic: topic, Id: id, IfVersion: c.IfVersion, UpdateMask: &fieldmaskpb.FieldMask{}}
	set := func(path string) { r.UpdateMask.Paths = append(r.UpdateMask.Paths, path) }
	if c.Payload != nil {
		set("payload")
		r.Payload = c.Payload
	}
	if c.Attributes != nil {
		set("attributes")
		r.Attributes = wire.Attributes(c.Attributes)
	}
	if c.MaxRetries != nil {
		set("max_retries")
		if n := wire.Int32(*c.MaxRetries); n != -1 {
			r.MaxRetries = &n
		}
	}
	if c.VisibilityTimeout != nil {
		set("visibility_timeout_ms")
		r.VisibilityTimeoutMs = wire.Millis(*c.VisibilityTimeout)
	}
	if c.HandlerTimeout != nil {
		set("handler_timeout_ms")
		r.HandlerTimeoutMs = wire.Millis(*c.HandlerTimeout)
	}
	if c.Backoff != nil {
		set("backoff")
		if *c.Backoff != (Backoff{}) {
			r.Backoff = c.Backoff.wire()
		}
	}
	c.fillTraits(r, set)
	c.fillTimes(r, set)
	return r, nil
}

func (c *Change) fillTraits(r *ddqv1.UpdateTaskRequest, set func(path string)) {
	if c.Priority != nil {
		set("priority")
		r.Priority = wire.Int32(*c.Priority)
	}
	if c.FairnessKey != nil {
		set("fairness_key")
		r.FairnessKey = *c.FairnessKey
	}
	if c.FairnessWeight != nil {
		set("fairness_weight")
		r.FairnessWeight = wire.Int32(*c.FairnessWeight)
	}
}

func (c *Change) fillTimes(r *ddqv1.UpdateTaskRequest, set func(path string)) {
	switch {
	case c.ExpireAfter != 0:
		set("expire_after")
		r.Expiry = &ddqv1.UpdateTaskRequest_ExpireAfter{ExpireAfter: durationpb.New(c.ExpireAfter)}
	case c.Expires != nil:
		set("expire_time")
		if !c.Expires.IsZero() {
			r.Expiry = &ddqv1.UpdateTaskRequest_ExpireTime{ExpireTime: timestamppb.New(*c.Expires)}
		}
	}
	switch {
	case c.When == nil:
	case c.When.Due.IsZero():
		set("delay")
		r.When = &ddqv1.UpdateTaskRequest_Delay{Delay: durationpb.New(c.When.Delay)}
	default:
		set("execute_time")
		r.When = &ddqv1.UpdateTaskRequest_ExecuteTime{ExecuteTime: timestamppb.New(c.When.Due)}
	}
}
