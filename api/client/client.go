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
	cfg       Config
	conn      grpc.ClientConnInterface
	own       *grpc.ClientConn // nil when the connection is the caller's
	addr      string           // that Dial was given
	fleet     bool             // it was given several servers
	queue     ddqv1.DelayQueueServiceClient
	admin     ddqv1.AdminServiceClient
	schedules ddqv1.ScheduleServiceClient
	audiences ddqv1.AudienceServiceClient
	sender    sender
	calls     callPool
	close     func() error // once
}

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
	c := &Client{
		cfg:       cfg.withDefaults(),
		conn:      conn,
		queue:     ddqv1.NewDelayQueueServiceClient(coded),
		admin:     ddqv1.NewAdminServiceClient(coded),
		schedules: ddqv1.NewScheduleServiceClient(coded),
		audiences: ddqv1.NewAudienceServiceClient(coded),
	}
	if cfg.Unary {
		c.sender = &unary{queue: c.queue}
	} else {
		c.sender = newPipeline(c.queue, c.cfg.Timeout)
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
