package node

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func newTestGate(most int) *gate {
	return newGate(&Config{MaxConnsPerIP: most}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

func TestAnAddressHoldsSoManyConnections(t *testing.T) {
	g, now := newTestGate(200), time.Unix(1000, 0)
	a, b := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
	for i := range 200 {
		if why := g.admit(a, now); why != "" {
			t.Fatalf("connection %d: %s", i+1, why)
		}
	}
	if why := g.admit(a, now.Add(time.Hour)); why != "open" {
		t.Errorf("connection 201: %q", why)
	}
	if why := g.admit(b, now); why != "" {
		t.Errorf("of another address: %s", why)
	}
	g.leave(a)
	if why := g.admit(a, now.Add(time.Hour)); why != "" {
		t.Errorf("in the place of one that was closed: %s", why)
	}
}

func TestAnAddressOpensSoManyConnectionsASecond(t *testing.T) {
	g, now := newTestGate(10), time.Unix(1000, 0)
	a := netip.MustParsePrefix("10.0.0.1/32")
	open := func(now time.Time) (n int) {
		for g.admit(a, now) == "" {
			g.leave(a)
			n++
		}
		return n
	}
	if n := open(now); n != openBurst {
		t.Errorf("%d at once, want %d", n, openBurst)
	}
	if n := open(now.Add(time.Second)); n != openASecond {
		t.Errorf("%d in a second, want %d", n, openASecond)
	}
}

// TestStrangersAreForgotten: who goes through addresses does not fill the memory.
func TestStrangersAreForgotten(t *testing.T) {
	g, now := newTestGate(10), time.Unix(1000, 0)
	stays := netip.MustParsePrefix("10.9.9.9/32")
	g.admit(stays, now)
	for i := range 10 * manyVisitors {
		from := netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.1/32", i/256, i%256))
		if why := g.admit(from, now.Add(time.Duration(i)*time.Millisecond)); why != "" {
			t.Fatal(why)
		}
		g.leave(from)
	}
	if n := len(g.by); n > manyVisitors+1 {
		t.Errorf("%d are remembered", n)
	}
	if g.by[stays] == nil || g.by[stays].open != 1 {
		t.Error("one with a connection was forgotten")
	}
}

// TestStrangersAreForgottenBesideManyWhoStay: everybody is looked at once in a while, and not for
// each stranger.
func TestStrangersAreForgottenBesideManyWhoStay(t *testing.T) {
	const staying = 3 * manyVisitors / 2
	g, now := newTestGate(10), time.Unix(1000, 0)
	comes := func(net, i int) netip.Prefix {
		from := netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.%d/32", net, i/256, i%256))
		if why := g.admit(from, now.Add(time.Duration(i)*time.Millisecond)); why != "" {
			t.Fatal(why)
		}
		return from
	}
	for i := range staying {
		comes(1, i)
	}
	sweeps, left := 0, 0
	for i := range 10 * staying {
		before := len(g.by)
		if g.leave(comes(2, i)); len(g.by) <= before {
			sweeps++
			left = max(left, before)
		}
	}
	if sweeps == 0 || sweeps > 20 {
		t.Errorf("%d times somebody was forgotten, for %d strangers", sweeps, 10*staying)
	}
	if left > 2*staying+100 || len(g.by) < staying {
		t.Errorf("up to %d were remembered, and %d are in the end", left, len(g.by))
	}
}

func TestWhoAConnectionIsOf(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:5":            "10.0.0.1/32",
		"[::ffff:10.0.0.1]:5":   "10.0.0.1/32",
		"[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:5":      "fe80::/64",
		"127.0.0.1:5":           "",
		"[::1]:5":               "",
	} {
		tcp := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))
		from, counts := visitorOf(tcp)
		if counts != (want != "") || counts && from.String() != want {
			t.Errorf("%s: %v, %v, want %q", addr, from, counts, want)
		}
	}
}

// strangers makes every connection one of the same address elsewhere.
type strangers struct{ net.Listener }

func (l strangers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return stranger{c}, err
}

type stranger struct{ net.Conn }

func (stranger) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }

func TestOverTheBoundConnectionsAreClosed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newTestGate(1).guard(strangers{inner})
	defer l.Close()
	accepted := make(chan net.Conn, 2)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	first := <-accepted
	if n, err := dial().Read(make([]byte, 1)); err == nil {
		t.Errorf("the second one was served %d bytes", n)
	}
	first.Close()
	first.Close() // counts once
	dial()
	(<-accepted).Close()
	l.Close()
	for c := range accepted {
		t.Errorf("%v was accepted, too", c)
	}
}

// TestConnectionsOfAllAddressesWait: this machine's own count, too, over all ports; who waits is let in when
// another one goes, and a port that is closed meanwhile says so.
func TestConnectionsOfAllAddressesWait(t *testing.T) {
	g := newTestGate(0)
	g.places = make(chan struct{}, 1)
	var ports []net.Listener
	for range 2 {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := g.guard(inner)
		defer l.Close()
		ports = append(ports, l)
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first, err := ports[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan net.Conn)
	go func() {
		c, err := ports[1].Accept()
		if err != nil {
			t.Error(err)
		}
		second <- c
	}()
	select {
	case <-second:
		t.Error("a connection was let in beyond the bound")
	case <-time.After(20 * time.Millisecond):
	}
	first.Close()
	c := <-second
	refused := make(chan error)
	go func() {
		_, err := ports[0].Accept()
		refused <- err
	}()
	waiting, err := net.Dial("tcp", ports[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	ports[0].Close()
	ports[0].Close()
	if err := <-refused; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a port that was closed: %v", err)
	}
	c.Close()
	if n := len(g.places); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

func TestDescriptorsAreDivided(t *testing.T) {
	for limit, want := range map[uint64]descriptors{
		40:             {fewestConns, 74},
		120:            {14, 74},
		1024:           {512, 480},
		4096:           {3064, 1000},
		1 << 63:        {1<<20 - 1032, 1000},
		math.MaxUint64: {1<<20 - 1032, 1000},
	} {
		if got := divide(limit); got != want {
			t.Errorf("of %d: %+v, want %+v", limit, got, want)
		}
	}
}
