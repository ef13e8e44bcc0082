package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// errTookOver is what a connection is refused with that led to another server than those before it.
// Nothing was sent, and the next one leads there as well.
var errTookOver = errors.New("redis: another server took over")

// line is a connection to a server, open until it is closed here or by the library.
type line struct {
	net.Conn
	ids  *identities
	addr string
}

// Close ends the connection.
func (l *line) Close() error {
	l.ids.forget(l)
	return l.Conn.Close()
}

// hangUp ends the connection without a farewell, which could take long. What that says of one that
// is broken is no news.
func (l *line) hangUp() {
	if secure, ok := l.Conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = l.Conn.Close()
}

// plainLine is a line of which the library can tell whether the server has hung up. It
// looks for that only where a connection is no wrapped one.
type plainLine struct {
	*line
	syscall.Conn
}

// keep returns a hook that keeps the connections to an address, so that they can be hung up, and
// marks the errors of making one. One that was begun before another server took over may lead to
// the former one.
func (s *identities) keep(addr string) redis.Hook { return keeper{ids: s, addr: addr} }

type keeper struct {
	ids  *identities
	addr string
}

func (k keeper) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		begun := k.ids.takeovers(k.addr)
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, &unsentError{err}
		}
		return k.ids.open(k.addr, conn, begun)
	}
}

func (keeper) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (keeper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// takeovers is how often another server was found at an address.
func (s *identities) takeovers(addr string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(addr).takeovers
}

// open keeps a connection, or closes it when another server took over since it was begun.
func (s *identities) open(addr string, conn net.Conn, begun uint64) (net.Conn, error) {
	l := &line{conn, s, addr}
	s.mu.Lock()
	at := s.at(addr)
	late := at.takeovers != begun
	if !late {
		at.lines[l] = struct{}{}
	}
	s.mu.Unlock()
	if late {
		return nil, &unsentError{errors.Join(errTookOver, conn.Close())}
	}
	if plain, ok := conn.(syscall.Conn); ok {
		return plainLine{l, plain}, nil
	}
	return l, nil
}

// forget is told of each connection that is closed.
func (s *identities) forget(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at(l.addr).lines, l)
}
