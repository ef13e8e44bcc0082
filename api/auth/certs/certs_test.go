package certs

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

// lab is a folder of certificates.
type lab struct {
	*testing.T
	dir string
}

func (l lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l lab) issue(name, ca string, r Request) {
	l.Helper()
	var by *tls.Certificate
	if ca != "" {
		var err error
		if by, err = Authority(l.path(ca+".crt"), l.path(ca+".key")); err != nil {
			l.Fatal(err)
		}
	}
	if r.For == 0 {
		r.For = year
	}
	r.Name = name
	if err := Issue(r, by, l.path(name+".crt"), l.path(name+".key")); err != nil {
		l.Fatal(err)
	}
}

func (l lab) files(name string) Files {
	return Files{Cert: l.path(name + ".crt"), Key: l.path(name + ".key"), CA: l.path("ca.crt"), ClientCA: l.path("ca.crt"),
		ClientAuth: tls.RequireAndVerifyClientCert, Min: tls.VersionTLS12}
}

func (l lab) open(name string) *Certs {
	l.Helper()
	c, err := Open(l.files(name))
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// move puts one pair in the place of another.
func (l lab) move(from, to string) {
	l.Helper()
	for _, end := range []string{".crt", ".key"} {
		if err := os.Rename(l.path(from+end), l.path(to+end)); err != nil {
			l.Fatal(err)
		}
	}
}

func newLab(t *testing.T) lab {
	l := lab{t, t.TempDir()}
	l.issue("ca", "", Request{CA: true})
	l.issue("other", "", Request{CA: true})
	l.issue("node", "ca", Request{Hosts: []string{"node", "127.0.0.1"}})
	l.issue("client", "ca", Request{})
	return l
}

// meet has a client and a server shake hands, and returns what each thinks of it.
func meet(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	lis, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := lis.Accept()
		if err == nil {
			_, err = io.WriteString(conn, "x") // shakes hands
			conn.Close()
		}
		done <- err
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", lis.Addr().String(), client)
	if err != nil {
		lis.Close()
		return tls.ConnectionState{}, errors.Join(err, <-done)
	}
	defer conn.Close()
	_, err = io.ReadAll(conn)
	return conn.ConnectionState(), errors.Join(err, <-done)
}

func TestCertificatesThatAreMadeWork(t *testing.T) {
	l := newLab(t)
	server, client := l.open("node"), l.open("client")
	for _, name := range []string{"", "node"} {
		state, err := meet(t, server.Server("h2"), client.Client(name))
		if err != nil || state.Version != tls.VersionTLS13 {
			t.Errorf("as %q: TLS %x, %v", name, state.Version, err)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	l := newLab(t)
	l.issue("stranger", "other", Request{Hosts: []string{"node"}})
	l.issue("self", "", Request{})
	l.issue("brief", "ca", Request{For: time.Millisecond})
	server := l.open("node").Server()
	pair := func(name string) []tls.Certificate {
		p, err := tls.LoadX509KeyPair(l.path(name+".crt"), l.path(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{p}
	}
	for what, change := range map[string]func(*tls.Config){
		"another authority":        func(c *tls.Config) { c.Certificates = pair("stranger") },
		"signed by itself":         func(c *tls.Config) { c.Certificates = pair("self") },
		"no certificate":           func(c *tls.Config) { c.Certificates = nil },
		"expired":                  func(c *tls.Config) { c.Certificates = pair("brief") },
		"the server, another name": func(c *tls.Config) { c.ServerName = "other" },
		"the server, not trusted":  func(c *tls.Config) { c.RootCAs = nil },
		"TLS 1.1":                  func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"CBC": func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		},
	} {
		client := l.open("client").Client("node")
		change(client)
		if _, err := meet(t, server, client); err == nil {
			t.Errorf("%s: let in", what)
		}
	}
	strict := l.files("node")
	strict.Min = tls.VersionTLS13
	c, err := Open(strict)
	if err != nil {
		t.Fatal(err)
	}
	old := l.open("client").Client("node")
	old.MaxVersion = tls.VersionTLS12
	if _, err := meet(t, c.Server(), old); err == nil {
		t.Error("TLS 1.2 where 1.3 is the least: let in")
	}
}

func TestRenewedFilesCountForTheNextConnection(t *testing.T) {
	l := newLab(t)
	server, client := l.open("node"), l.open("client")
	config := server.Server()
	serial := func() string {
		t.Helper()
		state, err := meet(t, config, client.Client("node"))
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if changed, err := server.Reload(); changed || err != nil {
		t.Fatalf("nothing changed: %v, %v", changed, err)
	}
	l.issue("next", "ca", Request{Hosts: []string{"node"}})
	l.move("next", "node")
	if serial() != first {
		t.Error("counts before it was read")
	}
	if changed, err := server.Reload(); !changed || err != nil {
		t.Fatalf("%v, %v", changed, err)
	}
	if serial() == first {
		t.Error("the old certificate is still sent")
	}
	// Another authority of clients: those of the old one are out.
	if err := os.Rename(l.path("other.crt"), l.path("ca.crt")); err != nil {
		t.Fatal(err)
	}
	if changed, err := server.Reload(); !changed || err != nil {
		t.Fatalf("%v, %v", changed, err)
	}
	if _, err := meet(t, config, client.Client("node")); err == nil {
		t.Error("a client of the former authority is let in")
	}
}

func TestFilesThatCannotBeUsedChangeNothing(t *testing.T) {
	l := newLab(t)
	server := l.open("node")
	expires := server.Expires()
	good := map[string][]byte{}
	for _, name := range []string{"node.crt", "node.key", "ca.crt"} {
		good[name], _ = os.ReadFile(l.path(name))
	}
	l.issue("brief", "ca", Request{For: time.Millisecond})
	brief, _ := os.ReadFile(l.path("brief.crt"))
	otherKey, _ := os.ReadFile(l.path("client.key"))
	for what, damage := range map[string]func() error{
		"half a certificate": func() error {
			return os.WriteFile(l.path("node.crt"), good["node.crt"][:len(good["node.crt"])/2], 0o600)
		},
		"empty":                    func() error { return os.WriteFile(l.path("node.crt"), nil, 0o600) },
		"another key":              func() error { return os.WriteFile(l.path("node.key"), otherKey, 0o600) },
		"expired, and its key":     func() error { return os.WriteFile(l.path("node.crt"), brief, 0o600) },
		"no authority":             func() error { return os.WriteFile(l.path("ca.crt"), []byte("x"), 0o600) },
		"a file that is not there": func() error { return os.Remove(l.path("node.key")) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if changed, err := server.Reload(); changed || err == nil {
			t.Errorf("%s: changed %v, %v", what, changed, err)
		}
		if _, err := Open(l.files("node")); err == nil {
			t.Errorf("%s: opened", what)
		}
		for name, content := range good {
			if err := os.WriteFile(l.path(name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if changed, err := server.Reload(); changed || err != nil || server.Expires() != expires {
			t.Errorf("after %s: changed %v, %v", what, changed, err)
		}
	}
}

func TestARenewedKeyIsGuardedAsTheFirstOne(t *testing.T) {
	l := newLab(t)
	files, refusal := l.files("node"), error(nil)
	files.GuardKey = func(name string) error {
		if name != files.Key {
			t.Errorf("asked about %s", name)
		}
		return refusal
	}
	c, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Own()[0].SerialNumber
	refusal = errors.New("everybody can read it")
	if changed, err := c.Reload(); changed || err != nil {
		t.Errorf("with the same key: %v, %v", changed, err)
	}
	l.issue("next", "ca", Request{Hosts: []string{"node"}})
	l.move("next", "node")
	if changed, err := c.Reload(); changed || !errors.Is(err, refusal) || c.Own()[0].SerialNumber.Cmp(before) != 0 {
		t.Errorf("with another key: %v, %v", changed, err)
	}
	if _, err := Open(files); !errors.Is(err, refusal) {
		t.Errorf("opened: %v", err)
	}
	refusal = nil
	if changed, err := c.Reload(); !changed || err != nil || c.Own()[0].SerialNumber.Cmp(before) == 0 {
		t.Errorf("once it is guarded: %v, %v", changed, err)
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	l := newLab(t)
	info, err := os.Stat(l.path("node.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	before, _ := os.ReadFile(l.path("node.key"))
	if err := Issue(Request{Name: "node", For: year}, nil, l.path("node.crt"), l.path("node.key")); err == nil {
		t.Error("files that exist were written")
	}
	if err := Issue(Request{Name: "node", For: year}, nil, l.path("node.crt"), l.path("fresh.key")); err == nil {
		t.Error("a certificate that exists was written")
	}
	if _, err := os.Stat(l.path("fresh.key")); err == nil {
		t.Error("a key without its certificate is left")
	}
	if after, _ := os.ReadFile(l.path("node.key")); string(after) != string(before) {
		t.Error("the key was changed")
	}
	if _, err := Authority(l.path("node.crt"), l.path("node.key")); err == nil {
		t.Error("a node signs others")
	}
}
