package peer

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// nodeCredential says in each call which node this is. A credential is for one method of one
// node, so it is made for the node that the address belongs to now.
type nodeCredential struct {
	to   *atomic.Pointer[string]
	sign func(node, method string) string
}

func (c nodeCredential) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	call, _ := credentials.RequestInfoFromContext(ctx)
	return map[string]string{"authorization": c.sign(*c.to.Load(), call.Method)}, nil
}

// RequireTransportSecurity is false: off this machine a node starts without TLS only when it
// is told to.
func (nodeCredential) RequireTransportSecurity() bool { return false }
