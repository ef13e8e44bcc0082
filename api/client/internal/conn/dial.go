package conn

import (
	"crypto/tls"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // connections to several servers leave out those that drain
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/ddq-io/ddq/api/client/token"
)

// Config says how to connect; client.Config says what each field means.
type Config struct {
	TLS         *tls.Config
	Token       string
	Tokens      *token.Source
	Namespace   string
	Credentials credentials.TransportCredentials
	Options     []grpc.DialOption
}

// Dial returns a connection to the server at addr, or to a fleet: several addresses with
// commas between them. It connects at the first call.
func Dial(addr string, cfg Config) (*grpc.ClientConn, error) {
	switch {
	case cfg.Token != "" && cfg.Tokens != nil:
		return nil, errors.New("there are Token and Tokens: which one is to be shown?")
	case cfg.Token != "":
		own := grpc.WithPerRPCCredentials(bearer{cfg.Token, !onlyLocal(addr)})
		cfg.Options = append([]grpc.DialOption{own}, cfg.Options...)
	case cfg.Tokens != nil:
		cfg.Options = append(cfg.Tokens.DialOptions(!onlyLocal(addr)), cfg.Options...)
	}
	if cfg.Namespace != "" {
		cfg.Options = append([]grpc.DialOption{InNamespace(cfg.Namespace)}, cfg.Options...)
	}
	if !strings.Contains(addr, ",") {
		return grpc.NewClient(addr, cfg.options(serviceConfig)...)
	}
	var state resolver.State
	for a := range strings.SplitSeq(addr, ",") {
		if a = strings.TrimSpace(a); a == "" {
			return nil, errors.New("an address is empty")
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a, ServerName: a})
	}
	nodes := manual.NewBuilderWithScheme("ddq")
	nodes.InitialState(state)
	return grpc.NewClient("ddq:///nodes", append(cfg.options(fleetConfig), grpc.WithResolvers(nodes))...)
}

// serviceConfig spreads calls over all addresses that a name resolves to.
const serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// fleetConfig is serviceConfig for several servers, which say over gRPC health
// whether they serve.
const fleetConfig = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}`

// Windows are fixed and large: frames of 1 MiB cross them without waiting.
const (
	streamWindow = 4 << 20
	connWindow   = 8 << 20
	ioBuffer     = 64 << 10
	maxReceive   = 64 << 20
)

// reconnect is the pause between attempts to connect: 0.6 s at most, with its jitter. A
// worker adds its own pause, and both together stay below a second after its server is back.
var reconnect = backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 450 * time.Millisecond}

func (c Config) options(service string) []grpc.DialOption {
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
	}, c.Options...)
}
