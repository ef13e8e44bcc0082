package client

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client/internal/conn"
)

// InNamespace has the calls of a connection be about a namespace, as Config.Namespace does: for connections
// that Dial does not make, such as those of a worker with Direct.
func InNamespace(name string) grpc.DialOption { return conn.InNamespace(name) }

// Dial returns a client of the server at addr, such as "127.0.0.1:9090", or of a
// fleet: "a:9090,b:9090,c:9090", or a name for all of them, "dns:///ddq:9090". Any
// node takes any call. Calls go to the nodes in turn; one that is down or drains is
// left out until it is back, and what it certainly did not do is repeated at another.
//
// It connects at the first call; an error means that addr or cfg is malformed.
func Dial(addr string, cfg Config) (*Client, error) {
	own, err := conn.Dial(addr, conn.Config{TLS: cfg.TLS, Token: cfg.Token, Tokens: cfg.Tokens, Namespace: cfg.Namespace, Credentials: cfg.Credentials, Options: cfg.DialOptions})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	c := New(own, cfg)
	c.own, c.addr, c.fleet = own, addr, strings.Contains(addr, ",")
	return c, nil
}
