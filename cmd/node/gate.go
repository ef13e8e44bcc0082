package node

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// Bounds of what one address may do. Connections of this machine do not count here; all of a
// process together are bounded by its descriptors, and there they do.
const (
	openASecond = 50 // connections that an address opens: each costs a handshake
	openBurst   = 200

	// manyVisitors is from how many on those who left are forgotten.
	manyVisitors = 1024
	sayEvery     = time.Minute
)

// descriptors are what the process may have open at a time, divided so that no connection takes
// what the store needs to make its next file.
type descriptors struct {
	conns int // connections to the gRPC, HTTP and profile ports
	files int // of the store
}

const (
	ownDescriptors = 32   // the process's own: listeners, gossip, logs, and what is open for a moment
	fewestFiles    = 74   // that the embedded store makes do with
	mostFiles      = 1000 // that it has any use for
	fewestConns    = 8
)

// processDescriptors divides what the process was given when it started.
func processDescriptors() descriptors {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return divide(1 << 10) // what most systems give at the least
	}
	return divide(uint64(limit.Cur)) //nolint:unconvert // signed on some systems
}

// divide gives the store half of a small limit, and what it has use for of a large one.
func divide(limit uint64) descriptors {
	all := int(min(limit, 1<<20))
	files := min(max(all/2-ownDescriptors, fewestFiles), mostFiles)
	return descriptors{conns: max(all-files-ownDescriptors, fewestConns), files: files}
}

// gate bounds the connections that one address holds and opens, over the ports of a node, so
// that nobody takes them from others. What is over is closed before a byte is read. It also
// bounds all connections together: the ports accept no more until one of them ends.
type gate struct {
	most    int           // open at a time of one address; 0: no bound
	places  chan struct{} // has one element for each connection, of any address
	log     *slog.Logger
	refused *prometheus.CounterVec

	mu     sync.Mutex
	by     map[netip.Prefix]*visitor // guarded by mu
	stayed int                       // when last some were forgotten; guarded by mu
	saidAt time.Time                 // guarded by mu
	fullAt time.Time                 // when it was last said that all places are taken; guarded by mu
}

// visitor is an address with connections, or one that had some a moment ago.
type visitor struct {
	open int
	pace *rate.Limiter
}

func gateFlags(fs *pflag.FlagSet, most *int) {
	fs.IntVar(most, "max-conns-per-ip", 200, "connections that one address may hold, over the gRPC and HTTP ports, beside this machine's own; 0 for no bound, as behind a proxy that hides addresses")
}

func checkConns(most int) error {
	if most < 0 || most > 1_000_000 {
		return wrongf("--max-conns-per-ip is 0 to 1000000, not %d", most)
	}
	return nil
}

func newGate(cfg *Config, log *slog.Logger, reg *prometheus.Registry) *gate {
	g := &gate{most: cfg.MaxConnsPerIP, places: make(chan struct{}, processDescriptors().conns), log: log, by: make(map[netip.Prefix]*visitor), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ddq_connections_refused_total", Help: "Connections closed at once, since their address held too many (open) or opened them too fast (rate).",
	}, []string{"reason"})}
	reg.MustRegister(g.refused)
	for _, reason := range []string{"open", "rate"} {
		g.refused.WithLabelValues(reason)
	}
	return g
}

// guard returns a listener of those connections that are within the bounds.
func (g *gate) guard(l net.Listener) net.Listener {
	closed := make(chan struct{})
	return &gatedListener{Listener: l, gate: g, closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// enter takes a place for a connection, and waits until there is one or closed is.
func (g *gate) enter(closed <-chan struct{}) bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
		g.sayFull(time.Now())
	}
	select {
	case g.places <- struct{}{}:
		return true
	case <-closed:
		return false
	}
}

func (g *gate) sayFull(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.fullAt) < sayEvery {
		return
	}
	g.fullAt = now
	g.log.Warn("new connections wait: the process may have no more files open", "open", cap(g.places))
}

// admit counts a connection of an address, or says why it is refused.
func (g *gate) admit(from netip.Prefix, now time.Time) (reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.by[from]
	if v == nil {
		g.forget(now)
		v = &visitor{pace: rate.NewLimiter(openASecond, max(openBurst, g.most))}
		g.by[from] = v
	}
	switch {
	case v.open >= g.most:
		reason = "open"
	case !v.pace.AllowN(now, 1):
		reason = "rate"
	default:
		v.open++
		return ""
	}
	g.refused.WithLabelValues(reason).Inc()
	if now.Sub(g.saidAt) >= sayEvery {
		g.saidAt = now
		g.log.Warn("connections of an address are refused: it has too many", "address", from, "reason", reason, "open", v.open)
	}
	return reason
}

func (g *gate) leave(from netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by[from].open--
}

// forget drops those without connections whose pace is as that of a stranger. It looks at
// everybody, so it waits until there are twice as many as it left the last time.
func (g *gate) forget(now time.Time) {
	if len(g.by) < max(manyVisitors, 2*g.stayed) {
		return
	}
	for from, v := range g.by {
		if v.open == 0 && v.pace.TokensAt(now) >= float64(v.pace.Burst()) {
			delete(g.by, from)
		}
	}
	g.stayed = len(g.by)
}

type gatedListener struct {
	net.Listener
	gate   *gate
	close  func() // closes closed, once
	closed chan struct{}
}

// Accept returns the next connection that is within the bounds, once there is a place for it.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		left := func() {}
		if from, counts := visitorOf(c.RemoteAddr()); counts && l.gate.most > 0 {
			if l.gate.admit(from, time.Now()) != "" {
				_ = c.Close()
				continue
			}
			left = func() { l.gate.leave(from) }
		}
		if !l.gate.enter(l.closed) {
			left()
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
		return &gatedConn{Conn: c, left: sync.OnceFunc(func() { <-l.gate.places; left() })}, nil
	}
}

func (l *gatedListener) Close() error {
	l.close()
	return l.Listener.Close()
}

// visitorOf is whom a connection is of: an IPv4 address, or the network that one has of IPv6. Those
// of this machine do not count.
func visitorOf(addr net.Addr) (netip.Prefix, bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return netip.Prefix{}, false
	}
	ip, bits := tcp.AddrPort().Addr().Unmap(), 32
	if ip.Is6() {
		bits = 64
	}
	from, err := ip.WithZone("").Prefix(bits)
	return from, err == nil
}

type gatedConn struct {
	net.Conn
	left func()
}

// Close gives the connection's place back, once, when its descriptor is free.
func (c *gatedConn) Close() error {
	defer c.left()
	return c.Conn.Close()
}
