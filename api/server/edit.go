package server

import (
	"context"

	"github.com/ddq-io/ddq/api/wire"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

func (q *queue) RescheduleTask(ctx context.Context, r *ddqv1.RescheduleTaskRequest) (*ddqv1.RescheduleTaskResponse, error) {
	when, e := rescheduleWhen(r)
	if e != nil {
		return nil, e
	}
	done, err := q.service.Tasks.Reschedule(ctx, r.Topic, r.Id, when, r.IfVersion)
	if err != nil {
		return nil, err
	}
	return &ddqv1.RescheduleTaskResponse{Topic: done.Topic, ExecuteTime: editedDue(done), Version: done.Version}, nil
}

func rescheduleWhen(r *ddqv1.RescheduleTaskRequest) (w service.When, e *problem.Error) {
	switch when := r.When.(type) {
	case *ddqv1.RescheduleTaskRequest_Delay:
		w.Delay, e = wire.Delay(when.Delay, "delay")
	case *ddqv1.RescheduleTaskRequest_ExecuteTime:
		w.At, e = wire.Instant(when.ExecuteTime, "execute_time")
	default:
		e = wire.Invalid("BAD_TIME", "when", "is missing: set delay or execute_time")
	}
	return w, e
}

func (q *queue) UpdateTask(ctx context.Context, r *ddqv1.UpdateTaskRequest) (*ddqv1.UpdateTaskResponse, error) {
	change, e := changeOf(r)
	if e != nil {
		return nil, e
	}
	done, err := q.service.Tasks.Update(ctx, r.Topic, r.Id, change, r.IfVersion)
	if err != nil {
		return nil, err
	}
	return &ddqv1.UpdateTaskResponse{Topic: done.Topic, ExecuteTime: editedDue(done), Version: done.Version}, nil
}

func (q *queue) PromoteTask(ctx context.Context, r *ddqv1.PromoteTaskRequest) (*ddqv1.PromoteTaskResponse, error) {
	done, err := q.service.Tasks.Promote(ctx, r.Topic, r.Id, r.IfVersion)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PromoteTaskResponse{Topic: done.Topic, ExecuteTime: editedDue(done), Version: done.Version}, nil
}

func editedDue(e service.Edited) *timestamppb.Timestamp {
	return wire.Stamp(new(timestamppb.Timestamp), e.Due)
}

// maskPaths are what an update_mask may name, and how the value of each is read.
var maskPaths = map[string]func(*service.TaskChange, *ddqv1.UpdateTaskRequest) *problem.Error{
	"payload":               changePayload,
	"attributes":            changeAttributes,
	"max_retries":           changeMaxRetries,
	"visibility_timeout_ms": changeVisibility,
	"handler_timeout_ms":    changeHandlerTimeout,
	"backoff":               changeBackoff,
	"expire_time":           changeExpireTime,
	"expire_after":          changeExpireAfter,
	"delay":                 changeDelay,
	"execute_time":          changeExecuteTime,
	"priority":              changePriority,
	"fairness_key":          changeFairnessKey,
	"fairness_weight":       changeFairnessWeight,
}

// changeOf converts what the mask names; other values are not looked at.
func changeOf(r *ddqv1.UpdateTaskRequest) (c service.TaskChange, e *problem.Error) {
	if len(r.UpdateMask.GetPaths()) == 0 {
		return c, wire.Invalid("BAD_MASK", "update_mask", "is missing or empty: name the fields to change")
	}
	c.Task.MaxRetries = -1
	c.Task.Traits = &store.Traits{Priority: int(r.Priority), FairnessKey: r.FairnessKey, FairnessWeight: int(r.FairnessWeight)}
	for _, path := range r.UpdateMask.Paths {
		read, known := maskPaths[path]
		switch {
		case path == "id" || path == "topic":
			return c, wire.Invalid("BAD_MASK", "update_mask", "names %s, which cannot be changed", path)
		case !known:
			return c, wire.Invalid("BAD_MASK", "update_mask", "names %q, which is no field to change", wire.Text(path))
		}
		if e := read(&c, r); e != nil {
			return c, e
		}
	}
	return c, nil
}

func changePayload(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) *problem.Error {
	c.Fields |= service.FieldPayload
	c.Task.Payload = r.Payload
	return nil
}

func changeAttributes(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) *problem.Error {
	c.Fields |= service.FieldAttributes
	_, c.Task.Attributes = wire.ReadAttributes(r.Attributes, nil)
	return nil
}

func changeMaxRetries(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) *problem.Error {
	c.Fields |= service.FieldMaxRetries
	if r.MaxRetries == nil {
		return nil // the topic's
	}
	if *r.MaxRetries < 0 { // -1 would mean the topic's
		return wire.Invalid("OUT_OF_RANGE_FIELD", "max_retries", "must not be negative")
	}
	c.Task.MaxRetries = int(*r.MaxRetries)
	return nil
}

func changeVisibility(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldVisibility
	c.Task.Visibility, e = wire.Span(r.VisibilityTimeoutMs, "visibility_timeout_ms")
	return e
}

func changeHandlerTimeout(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldHandlerTimeout
	c.Task.HandlerTimeout, e = wire.Span(r.HandlerTimeoutMs, "handler_timeout_ms")
	return e
}

func changeBackoff(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldBackoff
	c.Task.Backoff, e = wire.ReadBackoff(r.Backoff, "backoff")
	return e
}

func changeExpireTime(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldExpiry
	switch expiry := r.Expiry.(type) {
	case *ddqv1.UpdateTaskRequest_ExpireTime:
		c.Task.Expires, e = wire.Instant(expiry.ExpireTime, "expire_time")
	case *ddqv1.UpdateTaskRequest_ExpireAfter:
		e = wire.Invalid("BAD_MASK", "update_mask", "names expire_time, and the request has expire_after")
	}
	return e // unset: never
}

func changeExpireAfter(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldExpiry
	expiry, set := r.Expiry.(*ddqv1.UpdateTaskRequest_ExpireAfter)
	if !set {
		return wire.Invalid("BAD_MASK", "update_mask", "names expire_after, and the request has none")
	}
	c.ExpireAfter, e = wire.Delay(expiry.ExpireAfter, "expire_after")
	if e == nil && c.ExpireAfter == 0 { // 0 would mean never
		e = wire.Invalid("BAD_DELAY", "expire_after", "must be longer than 0")
	}
	return e
}

func changeDelay(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldWhen
	when, set := r.When.(*ddqv1.UpdateTaskRequest_Delay)
	if !set {
		return wire.Invalid("BAD_MASK", "update_mask", "names delay, and the request has none")
	}
	c.When.Delay, e = wire.Delay(when.Delay, "delay")
	return e
}

func changeExecuteTime(c *service.TaskChange, r *ddqv1.UpdateTaskRequest) (e *problem.Error) {
	c.Fields |= service.FieldWhen
	when, set := r.When.(*ddqv1.UpdateTaskRequest_ExecuteTime)
	if !set {
		return wire.Invalid("BAD_MASK", "update_mask", "names execute_time, and the request has none")
	}
	c.When.At, e = wire.Instant(when.ExecuteTime, "execute_time")
	return e
}

// What these give the task is checked together with what it has.

func changePriority(c *service.TaskChange, _ *ddqv1.UpdateTaskRequest) *problem.Error {
	c.Fields |= service.FieldPriority
	return nil
}

func changeFairnessKey(c *service.TaskChange, _ *ddqv1.UpdateTaskRequest) *problem.Error {
	c.Fields |= service.FieldFairnessKey
	return nil
}

func changeFairnessWeight(c *service.TaskChange, _ *ddqv1.UpdateTaskRequest) *problem.Error {
	c.Fields |= service.FieldFairnessWeight
	return nil
}
