package client

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // connections to several servers leave out those that drain
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Dial returns a client of the server at addr, such as "127.0.0.1:9090", or of a
// fleet: "a:9090,b:9090,c:9090", or a name for all of them, "dns:///ddq:9090". Any
// node takes any call. Calls go to the nodes in turn; one that is down or drains is
// left out until it is back, and what it certainly did not do is repeated at another.
//
// It connects at the first call; an error means that addr or cfg is malformed.
func Dial(addr string, cfg Config) (*Client, error) {
	conn, err := dial(addr, cfg)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	c := New(conn, cfg)
	c.own, c.addr, c.fleet = conn, addr, strings.Contains(addr, ",")
	return c, nil
}

// fleetConfig is serviceConfig for several servers, which say over gRPC health
// whether they serve.
const fleetConfig = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}`

func dial(addr string, cfg Config) (*grpc.ClientConn, error) {
	if cfg.Token != "" {
		own := grpc.WithPerRPCCredentials(bearer{cfg.Token, !onlyLocal(addr)})
		cfg.DialOptions = append([]grpc.DialOption{own}, cfg.DialOptions...)
	}
	if !strings.Contains(addr, ",") {
		return grpc.NewClient(addr, cfg.dialOptions(serviceConfig)...)
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
	return grpc.NewClient("ddq:///nodes", append(cfg.dialOptions(fleetConfig), grpc.WithResolvers(nodes))...)
}
