// Package clustertest has a network in memory for tests of fleets: it loses
// packets, is cut, and works in synctest bubbles.
package clustertest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Network connects nodes. The zero value works.
type Network struct {
	// Loss is the share of packets that get lost, 0 to 1. It is set before use.
	Loss float64

	// Delay is how long packets take, and half of how long a connection does. It is
	// set before use.
	Delay time.Duration

	mu     sync.Mutex
	joined byte
	nodes  map[string]*transport // by address
	cut    map[[2]string]bool    // from and to, by address
	conns  map[[2]string][]net.Conn
}

// inbox is how many packets wait for a node; more are lost.
const inbox = 1024

// Join adds a node and returns its address and its transport.
func (n *Network) Join() (addr string, t memberlist.Transport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes == nil {
		n.nodes, n.cut, n.conns = map[string]*transport{}, map[[2]string]bool{}, map[[2]string][]net.Conn{}
	}
	n.joined++
	node := newTransport(n, &net.UDPAddr{IP: net.IPv4(10, 0, 0, n.joined), Port: 7946})
	addr = node.addr.String()
	n.nodes[addr] = node
	return addr, node
}

// Restart gives the access of a node that has closed to its next life.
func (n *Network) Restart(addr string) memberlist.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		panic(err) // not from Join
	}
	node := newTransport(n, at)
	n.nodes[addr] = node
	return node
}

// Cut stops what goes from one address to another, or lets it through again.
// Connections between the two break.
func (n *Network) Cut(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{from, to}] = cut
	for _, way := range [][2]string{{from, to}, {to, from}} {
		for _, c := range n.conns[way] {
			c.Close()
		}
		delete(n.conns, way)
	}
}

// Split cuts both ways between every address of a and every one of b, or heals that.
func (n *Network) Split(a, b []string, cut bool) {
	for _, x := range a {
		for _, y := range b {
			n.Cut(x, y, cut)
			n.Cut(y, x, cut)
		}
	}
}

// way returns the node that is reached from another, nil when it is not.
func (n *Network) way(from, to string) *transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := n.nodes[to]
	if node == nil || n.cut[[2]string{from, to}] {
		return nil
	}
	return node
}

// transport is one node's access to the network.
type transport struct {
	network *Network
	addr    *net.UDPAddr
	packets chan *memberlist.Packet
	streams chan net.Conn
	once    sync.Once
	down    chan struct{}
}

func newTransport(n *Network, addr *net.UDPAddr) *transport {
	return &transport{
		network: n,
		addr:    addr,
		packets: make(chan *memberlist.Packet, inbox),
		streams: make(chan net.Conn),
		down:    make(chan struct{}),
	}
}

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.addr.IP, t.addr.Port, nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	now := time.Now()
	to := t.network.way(t.addr.String(), addr)
	if to == nil || t.network.Loss > 0 && rand.Float64() < t.network.Loss {
		return now, nil
	}
	packet := bytes.Clone(b)
	if t.network.Delay == 0 {
		to.receive(packet, t.addr)
	} else {
		time.AfterFunc(t.network.Delay, func() { to.receive(packet, t.addr) })
	}
	return now, nil
}

func (t *transport) receive(b []byte, from net.Addr) {
	select {
	case t.packets <- &memberlist.Packet{Buf: b, From: from, Timestamp: time.Now()}:
	default: // nobody reads as fast
	}
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streams }

var errUnreachable = errors.New("unreachable")

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	from := t.addr.String()
	late := time.NewTimer(timeout)
	defer late.Stop()
	to := t.network.way(from, addr)
	if to == nil || t.network.way(addr, from) == nil {
		<-late.C
		return nil, errUnreachable
	}
	if t.network.Delay > 0 {
		time.Sleep(min(2*t.network.Delay, timeout))
	}
	near, far := net.Pipe()
	select {
	case to.streams <- named{far, t.addr}:
	case <-to.down:
		return nil, errUnreachable
	case <-late.C:
		return nil, errUnreachable
	}
	t.network.mu.Lock()
	defer t.network.mu.Unlock()
	way := [2]string{from, addr}
	t.network.conns[way] = append(t.network.conns[way], near, far)
	return named{near, to.addr}, nil
}

func (t *transport) Shutdown() error {
	t.once.Do(func() {
		close(t.down)
		t.network.mu.Lock()
		defer t.network.mu.Unlock()
		delete(t.network.nodes, t.addr.String())
	})
	return nil
}

// named is a connection that knows who is at its other end.
type named struct {
	net.Conn
	remote *net.UDPAddr
}

func (c named) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: c.remote.IP, Port: c.remote.Port}
}

// String is for logs.
func (t *transport) String() string { return t.addr.IP.String() + ":" + strconv.Itoa(t.addr.Port) }
