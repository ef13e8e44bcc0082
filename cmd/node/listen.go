package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Off turns a listener off.
const Off = "off"

// checkAddr refuses what is no address.
func checkAddr(flag, addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return wrongf("--%s %q: want host:port", flag, addr)
	}
	return nil
}

// checkLoopback reports whether only this machine reaches an address.
func checkLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLoopback(host)
}

// checkListener refuses an address that other machines can reach, of a listener that has no
// authentication, unless that is what the operator asked for.
func checkListener(flag, addr string, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return wrongf("--%s %q: want host:port", flag, addr)
	}
	if insecure || isLoopback(host) {
		return nil
	}
	return wrongf("--%s %s: other machines could reach it, and there is no authentication; use 127.0.0.1, or accept that with --insecure", flag, addr)
}

// withPort gives an address whose port is 0 the port of another one.
func withPort(addr, bound string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return addr
	}
	if _, port, err = net.SplitHostPort(bound); err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// lostAfter is how long a caller over gRPC may acknowledge nothing of what it is sent. Until then a worker whose machine
// is gone is given tasks. It is below what keepalive takes, which pings what is silent.
const lostAfter = 5 * time.Second

// endingLost is a port whose connections end when they acknowledge nothing for so long. gRPC asks for that where it has
// the TCP connection in its hands, and those behind the gate are hidden from it.
type endingLost struct {
	net.Listener
	after time.Duration
}

func (l endingLost) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		endLost(tcp, l.after)
	}
	return c, err
}

// mayAnswer reports whether somebody may be at an address: only who refuses a connection says that nobody is. An address
// without a host, of every interface, or of a port that was not known yet, cannot be asked.
func mayAnswer(ctx context.Context, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || port == "0" || host == "" || ip != nil && ip.IsUnspecified() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = c.Close()
	return true
}

// askTimeout is how long an address may take to say whether somebody is there.
const askTimeout = 500 * time.Millisecond

// listen opens a port and names the flag to change when it cannot.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, startError{fmt.Errorf("--%s %s: %w", flag, addr, err)}
	}
	return l, nil
}
