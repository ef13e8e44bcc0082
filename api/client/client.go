package client

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Client talks to a ddq server. It is safe for concurrent use; share one. It
// owns two goroutines while its enqueue stream is open, gone once Close returns.
type Client struct {
	*caller
	taskClient
	enqueuer
	topicClient
	deadLetterClient
	scheduleClient
	audienceClient
	accessClient
	fleetClient

	conn  grpc.ClientConnInterface
	own   *grpc.ClientConn // nil when the connection is the caller's
	close func() error     // once
}

// The calls of a client by what they are about. A new one goes to its type, and users find
// it at Client.
type (
	taskClient struct {
		*caller
		queue ddqv1.DelayQueueServiceClient
	}
	topicClient struct {
		*caller
		admin ddqv1.AdminServiceClient
	}
	deadLetterClient struct {
		*caller
		admin ddqv1.AdminServiceClient
	}
	scheduleClient struct {
		*caller
		schedules ddqv1.ScheduleServiceClient
	}
	audienceClient struct {
		*caller
		audiences ddqv1.AudienceServiceClient
	}
	accessClient struct {
		*caller
		access ddqv1.AccessServiceClient
	}
	fleetClient struct {
		*caller
		admin ddqv1.AdminServiceClient
	}
)

// sender takes a call's tasks to the server and returns when each has an
// answer, be it an error.
type sender interface {
	send(ctx context.Context, k *call)
	close(ctx context.Context)
}

// New returns a client over a connection that stays the caller's: Close leaves
// it open. Credentials and DialOptions of cfg are not used.
func New(conn grpc.ClientConnInterface, cfg Config) *Client {
	coded := codedConn{conn}
	queue, admin := ddqv1.NewDelayQueueServiceClient(coded), ddqv1.NewAdminServiceClient(coded)
	calls := &caller{cfg: cfg.withDefaults()}
	c := &Client{
		caller:           calls,
		taskClient:       taskClient{calls, queue},
		enqueuer:         enqueuer{caller: calls},
		topicClient:      topicClient{calls, admin},
		deadLetterClient: deadLetterClient{calls, admin},
		scheduleClient:   scheduleClient{calls, ddqv1.NewScheduleServiceClient(coded)},
		audienceClient:   audienceClient{calls, ddqv1.NewAudienceServiceClient(coded)},
		accessClient:     accessClient{calls, ddqv1.NewAccessServiceClient(coded)},
		fleetClient:      fleetClient{calls, admin},
		conn:             conn,
	}
	if cfg.Unary {
		c.sender = &unary{queue: queue}
	} else {
		c.sender = newPipeline(queue, c.cfg.Timeout)
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
	c.sender.close(ctx)
	if c.own == nil {
		return nil
	}
	return c.own.Close()
}

// codedConn makes every call use ddq's codec, also on a caller's connection.
type codedConn struct{ grpc.ClientConnInterface }

var useCodec = grpc.ForceCodecV2(codec.Proto)

func (c codedConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, append(opts, useCodec)...)
}

func (c codedConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(ctx, desc, method, append(opts, useCodec)...)
}
