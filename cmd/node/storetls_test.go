package node

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/port"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// tap hands connections on to an address and remembers what crosses it, both ways. It owns its
// goroutines, which end with the test.
type tap struct {
	addr string
	mu   sync.Mutex
	seen bytes.Buffer // guarded by mu
}

func (w *tap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Write(b)
}

// shows reports whether a text crossed it in clear.
func (w *tap) shows(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.seen.Bytes(), []byte(text))
}

func (w *tap) size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Len()
}

func newTap(t *testing.T, to string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &tap{addr: l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.carry(near, to) })
		}
	})
	return w
}

// carry returns when either end has closed.
func (w *tap) carry(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { io.Copy(io.MultiWriter(far, w), near); far.Close() })
	both.Go(func() { io.Copy(io.MultiWriter(near, w), far); near.Close() })
	both.Wait()
}

// newTLSRedis starts a Redis that speaks TLS on a port, and returns where.
func newTLSRedis(t *testing.T, dir string, settings ...string) (addr string) {
	t.Helper()
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claim.Release() })
	number := strconv.Itoa(claim.Number)
	redistest.Start(t, append([]string{
		"--tls-port", number, "--bind", port.Loopback, "--tls-cert-file", dir + "/node.crt", "--tls-key-file", dir + "/node.key", "--tls-ca-cert-file", dir + "/ca.crt",
	}, settings...)...)
	return net.JoinHostPort(port.Loopback, number)
}

// sendSecret enqueues a task at a node with a store and ends it.
func sendSecret(t *testing.T, text, store string, args ...string) {
	t.Helper()
	n, err := Start(context.Background(), configOf(t, append(args, "--store", store, "--http-addr", Off)...), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	c, err := client.Dial(n.GRPCAddr(), client.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Enqueue(context.Background(), client.Task{Topic: "mail", Payload: []byte(text), Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

// TestNothingCrossesTheWireToARedisInClear: neither payloads nor the password of a Redis with TLS do,
// and they do without, or this test would see nothing at all.
func TestNothingCrossesTheWireToARedisInClear(t *testing.T) {
	const secret, password = "nobody-is-to-read-this", "nor-the-password-of-redis"
	dir := makeCerts(t)
	user := []string{"--user", "ddq", "on", ">" + password, "~*", "&*", "+@all"}
	encrypted := newTap(t, newTLSRedis(t, dir, append(user, "--tls-auth-clients", "no")...))
	sendSecret(t, secret, "rediss://ddq:"+password+"@"+encrypted.addr, "--store-ca", dir+"/ca.crt")
	plain := newTap(t, redistest.StartTCP(t, user...).Addr())
	sendSecret(t, secret, "redis://ddq:"+password+"@"+plain.addr)
	for _, text := range []string{secret, password} {
		if !plain.shows(text) {
			t.Errorf("%s is not seen without TLS", text)
		}
		if encrypted.shows(text) {
			t.Errorf("%s is seen with TLS", text)
		}
	}
	if encrypted.size() < len(secret)+len(password) {
		t.Errorf("%d bytes crossed", encrypted.size())
	}
}

// TestRedisIsVerified: a Redis of another authority or name is not talked to, and one that asks for a
// certificate gets that of --store-cert.
func TestRedisIsVerified(t *testing.T) {
	dir, others := makeCerts(t), makeCerts(t)
	by, err := certs.Authority(dir+"/ca.crt", dir+"/ca.key")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	r := certs.Request{Name: "node", Hosts: []string{"redis.test"}, For: time.Hour}
	if err := certs.Issue(r, by, filepath.Join(elsewhere, "node.crt"), filepath.Join(elsewhere, "node.key")); err != nil {
		t.Fatal(err)
	}
	open := newTLSRedis(t, dir, "--tls-auth-clients", "no")
	asks := newTLSRedis(t, dir, "--tls-auth-clients", "yes")
	named := newTLSRedis(t, dir, "--tls-auth-clients", "no", "--tls-cert-file", elsewhere+"/node.crt", "--tls-key-file", elsewhere+"/node.key")
	ca, cert := []string{"--store-ca", dir + "/ca.crt"}, []string{"--store-cert", dir + "/node.crt", "--store-key", dir + "/node.key"}
	for what, c := range map[string]struct {
		store string
		args  []string
		want  string // of the error; empty: it starts
	}{
		"its authority":            {"rediss://" + open, ca, ""},
		"a certificate":            {"rediss://" + asks, append(ca, cert...), ""},
		"the system's authorities": {"rediss://" + open, nil, "certificate"},
		"another authority":        {"rediss://" + open, []string{"--store-ca", others + "/ca.crt"}, "certificate"},
		"another name":             {"rediss://" + named, ca, "certificate"},
		"no certificate":           {"rediss://" + asks, ca, "open redis"}, // its reason may be lost with the connection
		"no TLS":                   {"redis://" + open, nil, "store"},
		"not verified":             {"rediss://" + open + "?skip_verify=true", nil, "skip_verify"},
		"an authority without TLS": {"redis://" + open, ca, "rediss"},
		"half of a certificate":    {"rediss://" + open, cert[:2], "go together"},
		"no such file":             {"rediss://" + open, []string{"--store-ca", dir + "/none"}, "none"},
		"no certificate in it":     {"rediss://" + open, []string{"--store-ca", dir + "/node.key"}, "has no certificate"},
	} {
		n, err := Start(context.Background(), configOf(t, append(c.args, "--store", c.store, "--http-addr", Off)...), slog.New(slog.DiscardHandler))
		switch {
		case err == nil:
			n.Stop()
			if c.want != "" {
				t.Errorf("%s: it started", what)
			}
		case c.want == "" || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v; want %q", what, err, c.want)
		}
	}
}
