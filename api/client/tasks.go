package client

import (
	"context"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Get returns a task. Every topic is searched when topic is empty.
func (c *taskClient) Get(ctx context.Context, topic, id string) (task Snapshot, err error) {
	err = c.do(ctx, idempotent, func(ctx context.Context) error {
		reply, err := c.queue.GetTask(ctx, &ddqv1.GetTaskRequest{Topic: topic, Id: id})
		task = snapshot(reply.GetTask())
		return err
	})
	return task, err
}

// Delete removes a task that no worker holds and returns the topic it was in.
// Every topic is searched when topic is empty.
func (c *taskClient) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	err = c.do(ctx, once, func(ctx context.Context) error {
		reply, err := c.queue.DeleteTask(ctx, &ddqv1.DeleteTaskRequest{Topic: topic, Id: id})
		foundIn = reply.GetTopic()
		return err
	})
	return foundIn, err
}

// When is a moment: Due, or Delay from now on the server's clock while Due is zero.
type When struct {
	Delay time.Duration
	Due   time.Time
}

// Reschedule moves the due time of a task that no worker holds. The receipt
// says where it was found and the due time as resolved. Every topic is
// searched when topic is empty.
func (c *taskClient) Reschedule(ctx context.Context, topic, id string, to When) (Receipt, error) {
	return c.RescheduleIf(ctx, topic, id, to, 0)
}

// List goes through the tasks of a topic in one state; StateUnknown lists all
// that are neither finished nor dead. Tasks that change state meanwhile may be
// missed or seen twice. The sequence ends with the first error.
func (c *taskClient) List(ctx context.Context, topic string, state State) iter.Seq2[Snapshot, error] {
	return pages(func(token string) (tasks []Snapshot, next string, err error) {
		err = c.do(ctx, idempotent, func(ctx context.Context) error {
			reply, err := c.queue.ListTasks(ctx, &ddqv1.ListTasksRequest{
				Topic:     topic,
				State:     ddqv1.TaskState(state),
				PageSize:  pageSize,
				PageToken: token,
			})
			tasks, next = snapshots(reply.GetTasks()), reply.GetNextPageToken()
			return err
		})
		return tasks, next, err
	})
}
