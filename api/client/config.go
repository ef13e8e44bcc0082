package client

import (
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Config says how a Client talks to the server. The zero value works.
type Config struct {
	// TLS encrypts the connection that Dial makes: &tls.Config{} trusts the authorities of
	// the system. Defaults to none, which is for servers on the same machine.
	TLS *tls.Config

	// Token says who calls, to a server that asks. It is sent over TLS, and without it to
	// addresses of this machine only.
	Token string

	// Credentials secure the connection that Dial makes, in another way than TLS does.
	Credentials credentials.TransportCredentials

	// DialOptions are added to Dial's own and win over them.
	DialOptions []grpc.DialOption

	// Timeout bounds each call whose context has no deadline, repeats included.
	// Defaults to 10s.
	Timeout time.Duration

	// MaxElapsed is how long a call is repeated at most, when its deadline is
	// later. Negative turns repeating off. Defaults to 30s.
	MaxElapsed time.Duration

	// Unary sends every Enqueue as a call of its own instead of over the shared
	// stream: for proxies that break streams. Much slower under load.
	Unary bool
}

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.MaxElapsed == 0 {
		c.MaxElapsed = 30 * time.Second
	}
	return c
}

// Windows are fixed and large: frames of 1 MiB cross them without waiting.
const (
	streamWindow = 4 << 20
	connWindow   = 8 << 20
	ioBuffer     = 64 << 10
	maxReceive   = 64 << 20
)

// serviceConfig spreads calls over all addresses that a name resolves to.
const serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// reconnect is the pause between attempts to connect: 0.6 s at most, with its jitter. A
// worker adds its own pause, and both together stay below a second after its server is back.
var reconnect = backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 450 * time.Millisecond}

func (c Config) dialOptions(service string) []grpc.DialOption {
	creds := c.Credentials
	switch {
	case creds != nil:
	case c.TLS != nil:
		creds = credentials.NewTLS(c.TLS)
	default:
		creds = insecure.NewCredentials()
	}
	return append([]grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultServiceConfig(service),
		grpc.WithDisableRetry(), // repeating is decided here, by what is safe
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithReadBufferSize(ioBuffer),
		grpc.WithWriteBufferSize(ioBuffer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceive)),
	}, c.DialOptions...)
}
