package client

import (
	"context"
	"iter"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Tasks are the calls about tasks: one at a time (Enqueue, Get, Wait, UpdateTask,
// Reschedule, PromoteTask, Cancel, Delete), several (EnqueueBatch, List, Find, CountTasks,
// DueHistogram, DeleteTasks, RescheduleTasks), their changes (Watch), and the rates that
// they are delivered by (AcquireTokens). A Client has them.
type Tasks struct {
	*caller
	queue  ddqv1.DelayQueueServiceClient
	sender sender.Sender // of enqueues
	calls  sender.Pool
}

// Get returns a task. Every topic is searched when topic is empty.
func (c *Tasks) Get(ctx context.Context, topic, id string) (task Snapshot, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.queue.GetTask, &ddqv1.GetTaskRequest{Topic: topic, Id: id})
	return snapshot(reply.GetTask()), err
}

// Delete removes a task that no worker holds and returns the topic it was in.
// Every topic is searched when topic is empty. The task of a workflow's step is refused.
func (c *Tasks) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.queue.DeleteTask, &ddqv1.DeleteTaskRequest{Topic: topic, Id: id})
	return reply.GetTopic(), err
}

// ForceDelete is Delete also for the task of a workflow's step, which fails by that.
func (c *Tasks) ForceDelete(ctx context.Context, topic, id string) (foundIn string, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.queue.DeleteTask, &ddqv1.DeleteTaskRequest{Topic: topic, Id: id, Force: true})
	return reply.GetTopic(), err
}

// List goes through the tasks of a topic in one state; StateUnknown lists all
// that are neither finished nor dead. Tasks that change state meanwhile may be
// missed or seen twice. The sequence ends with the first error.
func (c *Tasks) List(ctx context.Context, topic string, state State) iter.Seq2[Snapshot, error] {
	return call.Pages(func(token string) ([]Snapshot, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.queue.ListTasks, &ddqv1.ListTasksRequest{
			Topic:     topic,
			State:     ddqv1.TaskState(state),
			PageSize:  call.PageSize,
			PageToken: token,
		})
		return snapshots(reply.GetTasks()), reply.GetNextPageToken(), err
	})
}
