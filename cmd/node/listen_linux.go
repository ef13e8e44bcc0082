package node

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endLost has a connection end that acknowledges nothing of what it is sent for so long. Where the kernel cannot, as
// with some of several paths, keepalive ends it later.
func endLost(c *net.TCPConn, after time.Duration) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		})
	}
}
