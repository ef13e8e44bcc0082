package conn

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialer returns what connects to servers. A connection that is closed forgets
// what it has not sent. The system would go on sending otherwise, and once the
// network works again a command arrives whose outcome was called unknown long
// before: an add among them stores a task anew that was repeated elsewhere, and
// done, meanwhile.
func dialer(timeout time.Duration, secure func() *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dial := redis.NewDialer(&redis.Options{DialTimeout: timeout, TLSConfig: secure()})
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		plain := conn
		if t, ok := conn.(*tls.Conn); ok {
			plain = t.NetConn()
		}
		if t, ok := plain.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // fails only when it is broken
		}
		return conn, nil
	}
}
