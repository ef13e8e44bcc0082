//go:build linux

package main

import (
	"context"
	endian "encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// lab is hosts in network namespaces of their own, numbered from 1, and a switch
// between them: this process, which reads every frame and may lose or delay it.
// It owns a goroutine for each host, and one for each frame that is delayed.
type lab struct {
	*testing.T
	ports []*os.File // by host; [0] is none
	wg    sync.WaitGroup

	mu    sync.Mutex
	cut   map[[2]int]bool // from, to: nothing gets through; guarded by mu
	loss  float64         // of all frames; guarded by mu
	delay time.Duration   // at most; guarded by mu

	tap func(from, to int, frame []byte) // sees each frame, under mu; nil: nobody does; guarded by mu
}

// startLab makes a lab, or skips the test and says why.
func startLab(t *testing.T, hosts int) *lab {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and ip(8) for network namespaces")
	}
	l := &lab{T: t, ports: make([]*os.File, hosts+1), cut: make(map[[2]int]bool)}
	for host := range hosts + 1 {
		name := l.name(host)
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		l.ip("-n", name, "link", "set", "lo", "up")
	}
	for host := 1; host <= hosts; host++ {
		l.plug(host)
	}
	t.Cleanup(l.stop)
	for host := 1; host <= hosts; host++ {
		l.wg.Go(func() { l.forward(host) })
	}
	return l
}

// name is the namespace of a host; 0 is the switch. Labs of other tests have other names.
func (l *lab) name(host int) string {
	return fmt.Sprintf("ddq%d-%08x-lab%d", os.Getpid(), crc32.ChecksumIEEE([]byte(l.T.Name())), host)
}

// addr is where a host is.
func (l *lab) addr(host int, port int) string { return fmt.Sprintf("10.78.0.%d:%d", host, port) }

// enter is the command that runs another one on a host.
func (l *lab) enter(host int) []string { return []string{"ip", "netns", "exec", l.name(host)} }

func (l *lab) ip(args ...string) {
	l.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		l.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// plug connects a host to the switch. The last byte of its hardware address is
// its number.
func (l *lab) plug(host int) {
	l.Helper()
	ns, port := l.name(host), fmt.Sprint("p", host)
	l.ip("-n", l.name(0), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns, "address", fmt.Sprintf("02:00:00:00:00:%02x", host))
	l.ip("-n", l.name(0), "link", "set", port, "up")
	l.ip("-n", ns, "addr", "add", fmt.Sprintf("10.78.0.%d/24", host), "dev", "eth0")
	l.ip("-n", ns, "link", "set", "eth0", "up")
	err := l.on(0, func() (err error) {
		l.ports[host], err = openPort(port)
		return err
	})
	if err != nil {
		l.Fatalf("port of host %d: %v", host, err)
	}
}

// on calls do in the namespace of a host: what it opens belongs there.
func (l *lab) on(host int, do func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		failed <- func() error {
			ns, err := os.Open("/var/run/netns/" + l.name(host))
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return do()
		}()
	}()
	return <-failed
}

// from makes a client's connections come from a host.
func (l *lab) from(host int) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (conn net.Conn, err error) {
		err = l.on(host, func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
			return err
		})
		return conn, err
	})
}

// vnetHeader is in front of each frame: what the sender's network card would have
// done to it, and the receiver's is told now.
const vnetHeader = 10

// openPort opens an interface of this thread's namespace for raw frames.
func openPort(name string) (*os.File, error) {
	at, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	all := endian.NativeEndian.Uint16(endian.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: at.Index}),
	)
	return os.NewFile(uintptr(fd), name), err
}

// forward passes on what a host sends until its port is closed.
func (l *lab) forward(from int) {
	frame := make([]byte, vnetHeader+14+1<<16)
	for {
		n, err := l.ports[from].Read(frame)
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil || n < vnetHeader+14:
			continue
		}
		to := int(frame[vnetHeader+5])
		for host := 1; host < len(l.ports); host++ {
			if everyone := frame[vnetHeader]&1 == 1; host != from && (everyone || host == to) {
				l.pass(from, host, frame[:n])
			}
		}
	}
}

// pass sends a frame to a host, unless it gets lost.
func (l *lab) pass(from, to int, frame []byte) {
	l.mu.Lock()
	lost, delay := l.cut[[2]int{from, to}] || rand.Float64() < l.loss, l.delay
	if l.tap != nil {
		l.tap(from, to, frame)
	}
	l.mu.Unlock()
	switch {
	case lost:
	case delay == 0:
		_, _ = l.ports[to].Write(frame) // a full queue loses it, as real ones do
	default:
		frame = append([]byte(nil), frame...)
		l.wg.Go(func() {
			time.Sleep(delay/2 + rand.N(delay/2))
			_, _ = l.ports[to].Write(frame)
		})
	}
}

// sever loses everything between two hosts, or nothing again.
func (l *lab) sever(a, b int, apart bool) {
	l.severOneWay(a, b, apart)
	l.severOneWay(b, a, apart)
}

// severOneWay loses what one host sends to another.
func (l *lab) severOneWay(from, to int, apart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[[2]int{from, to}] = apart
}

// disturb loses a share of all frames and delays the others by up to a while.
func (l *lab) disturb(loss float64, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loss, l.delay = loss, delay
}

func (l *lab) stop() {
	for _, p := range l.ports[1:] {
		_ = p.Close() // once
	}
	l.wg.Wait()
}
