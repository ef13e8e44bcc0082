package cluster

import (
	"errors"
	"log"
	"net"
	"net/netip"
	"sync"

	"github.com/hashicorp/memberlist"
)

// Bounds of what the library reads before it has checked a key, and so of what strangers may occupy.
// How long a connection lasts is TCPTimeout of its settings.
const (
	maxStream    = 1 << 20 // bytes of a connection: what some 1,500 members need
	maxStreams   = 16      // connections from others at a time; more wait
	maxStreamsOf = 4       // those of one address, beside this machine's own; more are closed
)

var errLongStream = errors.New("more than a MiB from another node")

// transport bounds the connections of another transport, and what is read of each. Packets go as they
// are: the system bounds them. It owns one goroutine, gone after Shutdown.
type transport struct {
	memberlist.Transport
	streams chan net.Conn
	places  chan struct{} // has one element for each connection from others
	down    chan struct{} // closed when no more are wanted
	stop    func() error  // is done once

	mu sync.Mutex
	of map[netip.Addr]int // connections by address; guarded by mu
}

// listenAt returns a transport of the network. Port 0 stands for one that is free, which settings then have.
func listenAt(settings *memberlist.Config, l *log.Logger) (t *memberlist.NetTransport, err error) {
	tries := 1
	if settings.BindPort == 0 {
		tries = 10 // the port may be taken for the other protocol
	}
	for range tries {
		t, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{settings.BindAddr}, BindPort: settings.BindPort, Logger: l})
		if err == nil {
			break
		}
	}
	if err == nil && settings.BindPort == 0 {
		settings.BindPort = t.GetAutoBindPort()
		settings.AdvertisePort = settings.BindPort
	}
	return t, err
}

func newTransport(inner memberlist.Transport) *transport {
	t := &transport{
		Transport: inner,
		streams:   make(chan net.Conn),
		places:    make(chan struct{}, maxStreams),
		down:      make(chan struct{}),
		of:        make(map[netip.Addr]int),
	}
	closed, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case c := <-inner.StreamCh():
				t.admit(c)
			case <-closed:
				return
			}
		}
	}()
	t.stop = sync.OnceValue(func() error {
		close(t.down)
		err := inner.Shutdown() // waits for who has a connection to give
		close(closed)
		<-done
		return err
	})
	return t
}

// admit hands a connection on, once there is a place for it.
func (t *transport) admit(c net.Conn) {
	from := visitor(c)
	if !t.count(from) {
		_ = c.Close()
		return
	}
	select {
	case t.places <- struct{}{}:
	case <-t.down:
		t.leave(from)
		_ = c.Close()
		return
	}
	s := &stream{Conn: c, left: maxStream, gone: sync.OnceFunc(func() { <-t.places; t.leave(from) })}
	select {
	case t.streams <- s:
	case <-t.down:
		_ = s.Close()
	}
}

// visitor is the address that a connection counts for; the zero one for this machine's own.
func visitor(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

func (t *transport) count(from netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from.IsValid() && t.of[from] >= maxStreamsOf {
		return false
	}
	t.of[from]++
	return true
}

func (t *transport) leave(from netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[from]--; t.of[from] == 0 {
		delete(t.of, from)
	}
}

func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

func (t *transport) Shutdown() error { return t.stop() }

// stream is a connection from another node, or from a stranger.
type stream struct {
	net.Conn
	left int // bytes that may be read
	gone func()
}

func (s *stream) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, errLongStream
	}
	n, err := s.Conn.Read(b[:min(len(b), s.left)])
	s.left -= n
	return n, err
}

func (s *stream) Close() error {
	defer s.gone()
	return s.Conn.Close()
}
