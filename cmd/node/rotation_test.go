package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/client"
)

// lines are what a node logs.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default: // nobody waits any more
	}
	return len(b), nil
}

// rotated is a node that asks for certificates. Its own and its authorities are replaced, and the
// clients' with them.
type rotated struct {
	*testing.T
	dir  string
	log  lines
	node *Node

	mu      sync.RWMutex // held by who connects
	trusted *x509.CertPool
	mine    tls.Certificate
}

func startRotated(t *testing.T) *rotated {
	t.Helper()
	r := &rotated{T: t, dir: makeCerts(t), log: make(lines, 10_000), trusted: x509.NewCertPool()}
	r.issue("client", "ca", nil)
	r.put("clients.crt", r.read("ca.crt"))
	r.follow("ca", "client")
	cfg := configOf(t, "--tls-cert", r.path("node.crt"), "--tls-key", r.path("node.key"), "--tls-client-ca", r.path("clients.crt"), "--tls-client-auth", "require")
	cfg.TLS.every = 5 * time.Millisecond
	n, err := Start(t.Context(), cfg, slog.New(slog.NewTextHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	r.node = n
	return r
}

func (r *rotated) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rotated) read(name string) []byte {
	r.Helper()
	text, err := os.ReadFile(r.path(name))
	if err != nil {
		r.Fatal(err)
	}
	return text
}

// put replaces a file in one moment.
func (r *rotated) put(name string, text []byte) {
	r.Helper()
	next := r.path("next")
	if err := errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, r.path(name))); err != nil {
		r.Fatal(err)
	}
}

// issue makes a certificate of an authority, or an authority if there is none.
func (r *rotated) issue(name, ca string, hosts []string) {
	r.Helper()
	var by *tls.Certificate
	if ca != "" {
		var err error
		if by, err = certs.Authority(r.path(ca+".crt"), r.path(ca+".key")); err != nil {
			r.Fatal(err)
		}
	}
	if err := certs.Issue(certs.Request{Name: name, Hosts: hosts, CA: ca == "", For: time.Hour}, by, r.path(name+".crt"), r.path(name+".key")); err != nil {
		r.Fatal(err)
	}
}

// follow has clients trust an authority as well, and show another certificate from now on.
func (r *rotated) follow(ca, client string) {
	r.Helper()
	pair := r.pair(client)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trusted.AppendCertsFromPEM(r.read(ca + ".crt"))
	r.mine = pair
}

func (r *rotated) pair(name string) tls.Certificate {
	r.Helper()
	pair, err := tls.LoadX509KeyPair(r.path(name+".crt"), r.path(name+".key"))
	if err != nil {
		r.Fatal(err)
	}
	return pair
}

// says waits until the node logs that.
func (r *rotated) says(what string) {
	r.Helper()
	for line := range r.log {
		if strings.Contains(line, what) {
			return
		}
	}
}

const saysRenewed = "certificate was renewed"

// shows fails unless both ports have the certificate.
func (r *rotated) shows(name string) {
	r.Helper()
	want := r.pair(name).Leaf.SerialNumber
	for addr, proto := range map[string]string{r.node.GRPCAddr(): "h2", r.node.HTTPAddr(): "http/1.1"} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: r.trusted, Certificates: []tls.Certificate{r.mine}, NextProtos: []string{proto}})
		if err != nil {
			r.Fatal(err)
		}
		if got := conn.ConnectionState().PeerCertificates[0].SerialNumber; got.Cmp(want) != 0 {
			r.Errorf("%s: another certificate than %s is shown", proto, name)
		}
		conn.Close()
	}
}

// connects makes a call on a connection of its own.
func (r *rotated) connects(as tls.Certificate) error {
	c := r.dial(as)
	defer c.Close()
	_, err := c.Server(r.Context())
	return err
}

func (r *rotated) dial(as tls.Certificate) *client.Client {
	c, err := client.Dial(r.node.GRPCAddr(), client.Config{TLS: &tls.Config{RootCAs: r.trusted.Clone(), Certificates: []tls.Certificate{as}}, MaxElapsed: -1})
	if err != nil {
		panic(err) // of a wrong setting
	}
	return c
}

// calls makes calls until the returned function is called, which fails for each that failed: on a
// connection that stays, and on new ones.
func (r *rotated) calls() (stop func()) {
	var (
		over  atomic.Bool
		made  atomic.Int64
		group sync.WaitGroup
	)
	stays := r.dial(r.mine)
	for _, call := range []func() error{
		func() error {
			_, err := stays.Enqueue(r.Context(), client.Task{Topic: "mail", Delay: time.Hour})
			return err
		},
		func() error {
			r.mu.RLock()
			defer r.mu.RUnlock()
			return r.connects(r.mine)
		},
	} {
		group.Go(func() {
			for !over.Load() {
				if err := call(); err != nil {
					r.Errorf("after %d calls: %v", made.Load(), err)
					return
				}
				made.Add(1)
			}
		})
	}
	return func() {
		over.Store(true)
		group.Wait()
		stays.Close()
		r.Logf("%d calls", made.Load())
	}
}

// TestCertificatesAreReplacedUnderCalls, every second time with their authority, twenty times: no call
// fails. What is half written, or has the key of another, counts for nothing.
func TestCertificatesAreReplacedUnderCalls(t *testing.T) {
	r := startRotated(t)
	hosts := []string{"127.0.0.1"}
	r.put("node-0.crt", r.read("node.crt"))
	r.put("node-0.key", r.read("node.key"))
	defer r.calls()()
	ca := "ca"
	for i := 1; i <= 20; i++ {
		former, next := fmt.Sprint("node-", i-1), fmt.Sprint("node-", i)
		before, was := ca, r.mine
		if i%2 == 0 {
			ca = fmt.Sprint("ca-", i)
			r.issue(ca, "", nil)
			r.issue("client-"+ca, ca, nil)
			r.put("clients.crt", append(r.read(before+".crt"), r.read(ca+".crt")...))
			r.says(saysRenewed)
			r.follow(ca, "client-"+ca)
		}
		r.issue(next, ca, hosts)
		crt := r.read(next + ".crt")
		r.put("node.crt", crt[:len(crt)/2])
		r.says("failed to find any PEM data")
		r.shows(former)
		r.put("node.crt", crt)
		r.says("private key does not match") // it is that of before
		r.shows(former)
		r.put("node.key", r.read(next+".key"))
		r.says(saysRenewed)
		r.shows(next)
		if ca != before {
			r.put("clients.crt", r.read(ca+".crt"))
			r.says(saysRenewed)
			if err := r.connects(was); err == nil {
				t.Error("a client of the former authority is let in")
			}
			r.shows(next)
		}
	}
}
