package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// ServerStatus describes the node that answered.
type ServerStatus struct {
	Version    string
	Node       string
	Store      string // embedded, memory, redis-everysec, redis-always, ...
	Durability string // fast, replicated or synced: what a receipt is worth
	Warnings   []string
	Accepted   []string  // those of the warnings that a setting of the server accepts, such as insecure
	StoreNow   time.Time // the store's clock when the answer was made
	Uptime     time.Duration

	DefaultVisibilityTimeout time.Duration // of new topics
	MaxPayload               int           // bytes
}

// Server describes the node that answers, and what is wrong with it in plain words.
func (c *Fleet) Server(ctx context.Context) (s ServerStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.DescribeServer, &ddqv1.DescribeServerRequest{})
	return ServerStatus{
		Version:                  reply.GetVersion(),
		Node:                     reply.GetNode(),
		Store:                    reply.GetStore(),
		Durability:               reply.GetDurability(),
		Warnings:                 reply.GetWarnings(),
		Accepted:                 reply.GetAcceptedWarnings(),
		StoreNow:                 time.UnixMilli(reply.GetStoreNowUnixMs()).UTC(),
		Uptime:                   wire.Duration(reply.GetUptimeMs()),
		DefaultVisibilityTimeout: wire.Duration(reply.GetDefaultVisibilityTimeoutMs()),
		MaxPayload:               int(reply.GetMaxPayloadBytes()),
	}, err
}
