package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// ServerStatus describes the node that answered.
type ServerStatus struct {
	Version    string
	Node       string
	Store      string // embedded, memory, redis-everysec, redis-always, ...
	Durability string // fast, replicated or synced: what a receipt is worth
	Warnings   []string
	StoreNow   time.Time // the store's clock when the answer was made
	Uptime     time.Duration

	DefaultVisibilityTimeout time.Duration // of new topics
	MaxPayload               int           // bytes
}

// Server describes the node that answers, and what is wrong with it in plain words.
func (c *Fleet) Server(ctx context.Context) (s ServerStatus, err error) {
	err = c.do(ctx, idempotent, func(ctx context.Context) error {
		reply, err := c.admin.DescribeServer(ctx, &ddqv1.DescribeServerRequest{})
		s = ServerStatus{
			Version:                  reply.GetVersion(),
			Node:                     reply.GetNode(),
			Store:                    reply.GetStore(),
			Durability:               reply.GetDurability(),
			Warnings:                 reply.GetWarnings(),
			StoreNow:                 time.UnixMilli(reply.GetStoreNowUnixMs()).UTC(),
			Uptime:                   duration(reply.GetUptimeMs()),
			DefaultVisibilityTimeout: duration(reply.GetDefaultVisibilityTimeoutMs()),
			MaxPayload:               int(reply.GetMaxPayloadBytes()),
		}
		return err
	})
	return s, err
}
