package server

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/service/operations"
)

// What one message may have, by default.
const (
	maxRecv = 6 << 20
	framing = 1 << 20 // ids, attributes and the frames of payloads

	// MaxPayloads is how many bytes of payload fit into one message.
	MaxPayloads = maxRecv - framing
)

// Config tunes the gRPC server. The zero value works.
type Config struct {
	// Version is what DescribeServer reports. Defaults to "dev".
	Version string

	// MaxRecvBytes bounds one received message; more is RESOURCE_EXHAUSTED. It
	// must be over the largest batch, or that cannot arrive. Defaults to 6 MiB:
	// a batch of 4 MiB, a payload of 1 MiB, and what frames them.
	MaxRecvBytes int

	// MaxStreams bounds the concurrent calls of one connection; more wait at the
	// client. Defaults to 1,000.
	MaxStreams uint32

	// KeepaliveTime is how long a connection may be silent before it is pinged,
	// and KeepaliveTimeout how long the answer may take before it is closed. Their
	// sum is how long a worker that vanished goes unnoticed. Default to 10s and 5s.
	KeepaliveTime    time.Duration
	KeepaliveTimeout time.Duration

	// MinPing is the shortest interval at which clients may ping; those that ping
	// more often are disconnected. Defaults to 5s.
	MinPing time.Duration

	// HandshakeTimeout bounds the set-up of a connection, and how long the hello
	// of a subscription may take. Defaults to 5s.
	HandshakeTimeout time.Duration

	// MaxConnectionAge closes connections after this time, give or take a tenth,
	// so that clients spread over new nodes; calls get MaxConnectionAgeGrace to
	// end. 0 never does.
	MaxConnectionAge      time.Duration
	MaxConnectionAgeGrace time.Duration

	// SendStall is how long a worker or a producer may leave its stream unread before
	// the stream is closed and what waits for it goes to others. Defaults to 5s.
	SendStall time.Duration

	// DrainGrace is how long streams may go on to settle after Stop was called,
	// less when Stop's context ends sooner. Defaults to 20s.
	DrainGrace time.Duration

	// StreamBytes bounds what one EnqueueStream has in work: each frame counts
	// its payloads, 128 bytes a task and 64 KiB. A full stream is not read from. Defaults to
	// 16 MiB, which is 256 small frames.
	StreamBytes int64

	// Access tells who calls, and keeps the tokens. Without it nobody is asked, and
	// AccessService is not served.
	Access *access.Access

	// Operations are the changes that nobody waits for. Without them OperationService is not served.
	// Whoever made them stops them, behind the server.
	Operations *operations.Operations

	// Reencrypt encrypts what is in the store anew, from a mark on, batch records at a time. Nil: nothing
	// is encrypted there.
	Reencrypt func(ctx context.Context, mark string, batch int, report func(operations.Progress) error) error

	// Ready returns why the node is not ready beside what its runtime knows, or nil. It may be nil itself.
	Ready func() error

	// Audit is where what administrators do, and whom the server turned away, is written down
	// before it is answered. Without it nothing is.
	Audit *audit.Log

	// Observe lets every call through, and logs and counts those that Access would refuse.
	Observe bool

	// Warnings says what is less safe than it could be, for DescribeServer. It may be nil.
	Warnings func() []string

	// Accepted are those of the warnings that a setting accepts.
	Accepted []string

	// Spans makes spans of deliveries. Without it there are none.
	Spans delivery.Spans

	// Recorded is the id of the trace in which a call is recorded, empty when it is in none; exemplars of
	// request times name it. Without it there are none.
	Recorded func(context.Context) string

	// Options are further options of the gRPC server, such as credentials.
	Options []grpc.ServerOption
}

func (c Config) withDefaults() Config {
	c.Version = cmp.Or(c.Version, "dev")
	c.MaxRecvBytes = cmp.Or(c.MaxRecvBytes, maxRecv)
	c.MaxStreams = cmp.Or(c.MaxStreams, 1000)
	c.KeepaliveTime = cmp.Or(c.KeepaliveTime, 10*time.Second)
	c.KeepaliveTimeout = cmp.Or(c.KeepaliveTimeout, 5*time.Second)
	c.MinPing = cmp.Or(c.MinPing, 5*time.Second)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 5*time.Second)
	c.SendStall = cmp.Or(c.SendStall, 5*time.Second)
	c.DrainGrace = cmp.Or(c.DrainGrace, 20*time.Second)
	c.StreamBytes = cmp.Or(c.StreamBytes, 16<<20)
	return c
}

func (c Config) delivery() delivery.Config {
	return delivery.Config{HandshakeTimeout: c.HandshakeTimeout, SendStall: c.SendStall, DrainGrace: c.DrainGrace, Spans: c.Spans}
}

// options are the server options that c stands for, its own extras last.
func (c Config) options() []grpc.ServerOption {
	return append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(c.MaxRecvBytes),
		grpc.MaxConcurrentStreams(c.MaxStreams),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(c.HandshakeTimeout),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time:                  c.KeepaliveTime,
			Timeout:               c.KeepaliveTimeout,
			MaxConnectionAge:      c.MaxConnectionAge,
			MaxConnectionAgeGrace: c.MaxConnectionAgeGrace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             c.MinPing,
			PermitWithoutStream: true,
		}),
	}, c.Options...)
}

// ready joins Ready to what the runtime says.
func (c Config) ready(runtime func() error) func() error {
	if c.Ready == nil {
		return runtime
	}
	return func() error {
		if err := runtime(); err != nil {
			return err
		}
		return c.Ready()
	}
}
