package conn

import (
	"context"
	"net"
	"strings"
)

// bearer sends a token with each call.
type bearer struct {
	token  string
	secure bool // over TLS only
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// onlyLocal reports whether all of the addresses are of this machine.
func onlyLocal(addrs string) bool {
	for addr := range strings.SplitSeq(addrs, ",") {
		addr = strings.TrimPrefix(strings.TrimSpace(addr), "passthrough:///")
		if strings.HasPrefix(addr, "unix:") {
			continue
		}
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}
