//go:build linux

package sdk_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/bench/binary"
	"github.com/ddq-io/ddq/bench/port"
)

// server is a ddq of its own, which keeps its address and its data when it is killed.
type server struct {
	bin   string
	args  []string
	addr  string // of its HTTP port
	grpc  string // address of its gRPC port
	ca    string // file of the authority of its certificate; no TLS when it is empty
	token string // that may do everything; nobody is asked when it is empty
	http  *http.Client
	cmd   *exec.Cmd
	log   *bytes.Buffer
	ended chan struct{}
}

func newServer(t *testing.T, bin string, flags ...string) *server {
	t.Helper()
	return (&server{bin: bin, http: http.DefaultClient}).serve(t, flags)
}

// newSecureServer is a server with TLS, which asks who calls.
func newSecureServer(t *testing.T, bin string, flags ...string) *server {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	run(t, "", bin, "certs", "ca", "--dir", dir)
	run(t, "", bin, "certs", "node", "node", "--dir", dir, "--hosts", port.Loopback)
	run(t, "", bin, "token", "root", path("root-token"))
	ca, err := os.ReadFile(path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(path("root-token"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	s := &server{bin: bin, ca: path("ca.crt"), token: strings.TrimSpace(string(token))}
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	return s.serve(t, append(flags, "--tls-cert", path("node.crt"), "--tls-key", path("node.key"), "--auth", "token", "--root-token", "file:"+path("root-token")))
}

// serve starts a server for the first time.
func (s *server) serve(t *testing.T, flags []string) *server {
	t.Helper()
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	grpc, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	s.addr, s.grpc = claim.Addr(), grpc.Addr()
	s.args = append([]string{"server", "--data", t.TempDir(), "--grpc-addr", s.grpc, "--http-addr", s.addr}, flags...)
	s.start(t)
	t.Cleanup(func() {
		s.kill()
		if err := errors.Join(claim.Release(), grpc.Release()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) url() string {
	if s.ca != "" {
		return "https://" + s.addr
	}
	return "http://" + s.addr
}

// env is what a driver has to know of the server from its environment.
func (s *server) env() []string {
	if s.ca == "" {
		return nil
	}
	return []string{"NODE_EXTRA_CA_CERTS=" + s.ca}
}

// start returns when the server answers.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd, s.log, s.ended = exec.Command(s.bin, s.args...), new(bytes.Buffer), make(chan struct{})
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}(s.cmd, s.ended)
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if err := s.ready(); err == nil {
			return
		} else if time.Now().After(deadline) {
			s.kill()
			t.Fatalf("%v\n%s", err, s.log)
		}
	}
}

func (s *server) ready() error {
	answer, err := s.http.Get(s.url() + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server is not ready: %s", answer.Status)
	}
	return nil
}

// kill ends the server as a power cut would. It may be called twice.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

var build = sync.OnceValues(func() (string, error) { return binary.Build(scratch) })

// built is the ddq of this source.
func built(t *testing.T) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}
