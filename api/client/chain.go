package client

import (
	"context"
	"errors"
)

// maxChain is how many tasks Chain follows.
const maxChain = 100

// Chain returns a task, and behind it the one whose ack enqueued it (Snapshot.Cause), the one
// before that, and so on, at most 100. It ends at a task that no ack enqueued, or whose cause is gone:
// done tasks stay for as long as their topic keeps them. With an empty topic every topic is searched.
func (c *Client) Chain(ctx context.Context, topic, id string) ([]Snapshot, error) {
	var chain []Snapshot
	for range maxChain {
		task, err := c.Get(ctx, topic, id)
		switch {
		case len(chain) > 0 && errors.Is(err, ErrNotFound):
			return chain, nil
		case err != nil:
			return chain, err
		}
		if chain = append(chain, task); task.Cause == nil {
			break
		}
		topic, id = task.Cause.Topic, task.Cause.ID
	}
	return chain, nil
}
