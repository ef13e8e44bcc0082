package node

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestConnectionsOfAPortEndWhenTheyAreLost looks at what the kernel is told of an accepted connection.
func TestConnectionsOfAPortEndWhenTheyAreLost(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := endingLost{inner, 5 * time.Second}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := in.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	if e := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if got != 5000 {
		t.Errorf("a connection ends after %d ms without an acknowledgement, want 5000", got)
	}
}
