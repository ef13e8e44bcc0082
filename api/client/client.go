package client

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/api/client/audits"
	"github.com/ddq-io/ddq/api/client/internal/conn"
	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/api/client/overview"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Client talks to a ddq server. Its calls are the methods of the types that it embeds,
// each named for what they are about: c.Enqueue is a method of Tasks. It is safe for
// concurrent use; share one. It owns two goroutines while its enqueue stream is open,
// gone once Close returns.
type Client struct {
	Tasks
	Topics
	DeadLetters
	Schedules
	Calendars
	Audiences
	Workflows
	access.Access
	audits.Audits
	overview.Overviews
	operations.Operations
	Fleet

	*caller
	conn  grpc.ClientConnInterface
	own   *grpc.ClientConn // nil when the connection is the caller's
	close func() error     // once
}

// New returns a client over a connection that stays the caller's: Close leaves
// it open. Credentials and DialOptions of cfg are not used.
func New(cc grpc.ClientConnInterface, cfg Config) *Client {
	coded := conn.Coded{ClientConnInterface: cc}
	queue, admin, schedules := ddqv1.NewDelayQueueServiceClient(coded), ddqv1.NewAdminServiceClient(coded), ddqv1.NewScheduleServiceClient(coded)
	calls := &caller{cfg: cfg.withDefaults()}
	c := &Client{
		Tasks:       Tasks{caller: calls, queue: queue},
		Topics:      Topics{calls, admin},
		DeadLetters: DeadLetters{calls, admin},
		Schedules:   Schedules{calls, schedules},
		Calendars:   Calendars{calls, schedules},
		Audiences:   Audiences{calls, ddqv1.NewAudienceServiceClient(coded)},
		Workflows:   Workflows{calls, ddqv1.NewWorkflowServiceClient(coded)},
		Access:      access.New(calls.do, ddqv1.NewAccessServiceClient(coded)),
		Audits:      audits.New(calls.do, ddqv1.NewAuditServiceClient(coded)),
		Overviews:   overview.New(calls.do, admin),
		Operations:  operations.New(calls.do, ddqv1.NewOperationServiceClient(coded)),
		Fleet:       Fleet{calls, admin},
		caller:      calls,
		conn:        cc,
	}
	if cfg.Unary {
		c.sender = &sender.Unary{Queue: queue}
	} else {
		c.sender = sender.NewPipeline(queue, c.cfg.Timeout)
	}
	c.close = sync.OnceValue(c.shut)
	return c
}

// Conn returns the connection, for package worker and for generated stubs.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close waits, up to the configured timeout, for enqueues that were sent to be
// answered, and closes what Dial opened. Calls that come later fail with
// ErrClosed or as on a closed connection. Close may be called more than once.
func (c *Client) Close() error { return c.close() }

func (c *Client) shut() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer cancel()
	c.sender.Close(ctx)
	if c.own == nil {
		return nil
	}
	return c.own.Close()
}
