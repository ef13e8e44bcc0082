package node

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/time/rate"
)

// Bounds of what one address may do. Connections of this machine do not count.
const (
	openASecond = 50 // connections that an address opens: each costs a handshake
	openBurst   = 200

	// manyVisitors is from how many on those who left are forgotten.
	manyVisitors = 1024
	sayEvery     = time.Minute
)

// gate bounds the connections that one address holds and opens, over the ports of a node, so
// that nobody takes them from others. What is over is closed before a byte is read.
type gate struct {
	most    int // open at a time; 0: no bound
	log     *slog.Logger
	refused *prometheus.CounterVec

	mu     sync.Mutex
	by     map[netip.Prefix]*visitor // guarded by mu
	stayed int                       // when last some were forgotten; guarded by mu
	saidAt time.Time                 // guarded by mu
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
	g := &gate{most: cfg.MaxConnsPerIP, log: log, by: make(map[netip.Prefix]*visitor), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
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
	if g.most == 0 {
		return l
	}
	return &gatedListener{l, g}
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
	gate *gate
}

// Accept returns the next connection that is within the bounds.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, counts := visitorOf(c.RemoteAddr())
		if !counts {
			return c, nil
		}
		if l.gate.admit(from, time.Now()) != "" {
			_ = c.Close()
			continue
		}
		return &gatedConn{Conn: c, left: sync.OnceFunc(func() { l.gate.leave(from) })}, nil
	}
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

// Close gives the connection's place back, once.
func (c *gatedConn) Close() error {
	c.left()
	return c.Conn.Close()
}
