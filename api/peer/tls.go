package peer

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
)

// TLS are credentials that take their settings anew for each connection, so that
// certificates which were renewed, and authorities that were added, count for the next.
func TLS(settings func() *tls.Config) credentials.TransportCredentials {
	return renewed{credentials.NewTLS(settings()), settings}
}

type renewed struct {
	credentials.TransportCredentials // of when they were made: what they say of themselves stays
	settings                         func() *tls.Config
}

func (r renewed) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.settings()).ClientHandshake(ctx, authority, conn)
}

func (r renewed) Clone() credentials.TransportCredentials {
	return renewed{r.TransportCredentials.Clone(), r.settings}
}
