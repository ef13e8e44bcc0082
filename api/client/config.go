package client

import (
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ddq-io/ddq/api/client/token"
)

// Config says how a Client talks to the server. The zero value works.
type Config struct {
	// TLS encrypts the connection that Dial makes: &tls.Config{} trusts the authorities of
	// the system. Defaults to none, which is for servers on the same machine.
	TLS *tls.Config

	// Token says who calls, to a server that asks; Tokens does so where tokens end or change.
	// It is sent over TLS, and without it to addresses of this machine only.
	Token  string
	Tokens *token.Source

	// Namespace is where the topics and audiences are that calls are about. Defaults to that of the
	// token, which is "default" unless it was made in another one.
	Namespace string

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

	// Codec encodes the payloads of tasks that are enqueued or edited, and decodes those of
	// PayloadOf. Defaults to none: payloads are sent as they are. Schedules and workflows
	// have to be encoded by their method Encoded. Results, inputs of workflows, signals,
	// attributes and data of recipients are sent as they are.
	Codec Codec

	// Trace returns the W3C trace context that a task is enqueued with, which workers get with it;
	// empty for none. Package api/tracing has one for OpenTelemetry. Defaults to none.
	Trace func(ctx context.Context) (traceparent, tracestate string)

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
