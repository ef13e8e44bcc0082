//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// canary is a secret of which nothing is ever said.
const canary = "CaNaRy0123"

// plainSettings have values that are no secrets, so that an error may show them. What is in a file that
// they name, and the password of a URL where they are one, are secrets all the same.
var plainSettings = []string{
	"advertise-addr", "audit-log", "auth", "auth-mode", "backoff", "cors-origin", "data", "encryption", "gossip-addr", "gossip-advertise", "gossip-profile", "grpc-addr", "http-addr",
	"http-host", "http-serve", "join", "log-format", "log-level", "node-identity", "node-name", "oidc-alg", "oidc-audience", "oidc-ca", "oidc-issuer", "otlp-endpoint", "pprof-addr",
	"store-ca", "store-cert", "store-key", "tls-ca", "tls-cert", "tls-client-auth", "tls-client-ca", "tls-key", "tls-min", "tls-server-name", "trace-url", "ui-prefix", "zone",
}

// TestNoSettingTellsASecret gives each setting a secret in every form that secrets come in: by itself, as
// the password of a URL, in a file and in a variable that it names. A new setting is tested with all of
// them until plainSettings has it.
func TestNoSettingTellsASecret(t *testing.T) {
	t.Chdir(t.TempDir())
	cert, key := selfSigned(t)
	t.Setenv("DDQ_TEST_SECRET", canary)
	beside := map[string]map[string]string{ // settings without which one is not looked at
		"data":             {"store": "embedded"},
		"store-ca":         {"store": "rediss://127.0.0.1:1"},
		"store-cert":       {"store": "rediss://127.0.0.1:1", "store-key": key},
		"store-key":        {"store": "rediss://127.0.0.1:1", "store-cert": cert},
		"tls-cert":         {"tls-key": key},
		"tls-key":          {"tls-cert": cert},
		"tls-ca":           {"tls-cert": cert, "tls-key": key},
		"tls-client-ca":    {"tls-cert": cert, "tls-key": key, "tls-client-auth": "require"},
		"node-identity":    {"tls-cert": cert, "tls-key": key, "tls-client-auth": "require", "tls-client-ca": cert, "auth": "token"},
		"oidc-issuer":      {"auth": "token,oidc", "oidc-audience": "ddq"},
		"oidc-ca":          {"auth": "token,oidc", "oidc-audience": "ddq", "oidc-issuer": "https://127.0.0.1:1"},
		"root-token":       {"auth": "token"},
		"gossip-key":       {"gossip-addr": "127.0.0.1:0", "advertise-addr": "127.0.0.1:1"},
		"gossip-advertise": {"gossip-addr": "127.0.0.1:0", "advertise-addr": "127.0.0.1:1"},
		"join":             {"gossip-addr": "127.0.0.1:0", "advertise-addr": "127.0.0.1:1"},
	}
	bare := []string{canary, `x"` + canary, "x," + canary, "0x" + canary}
	var urls []string
	for _, scheme := range []string{"https", "http", "redis", "rediss", "redis-sentinel", "redis-cluster", "other"} {
		urls = append(urls, scheme+"://ddq:"+canary+"@127.0.0.1:1")
	}
	urls = append(urls, "https://ddq:"+canary+"@127.0.0.1:1/{trace_id}", "https://ddq:"+canary+"%zz@127.0.0.1:1", "https://ddq:"+canary+"@127.0.0.1:port")

	tried, served := 0, 0
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(node.Config).Flags(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "bool", "int", "float64", "duration":
			return // there is no room for one
		}
		t.Run(f.Name, func(t *testing.T) {
			try := func(what string, settings map[string]string) {
				t.Helper()
				said := serverSays(t, settings) + configSaid(t, settings)
				if tried++; strings.Contains(said, "msg=serving") {
					served++
				}
				if strings.Contains(said, canary) {
					t.Errorf("%s is told:\n%.600s", what, said)
				}
			}
			file := writeFile(t, canary+"\n")
			plain, values := slices.Contains(plainSettings, f.Name), []string{"file:" + file, file, "env:DDQ_TEST_SECRET"}
			if !plain {
				values = append(values, bare...)
			}
			if !plain || strings.Contains(f.Usage, "URL") && !strings.HasPrefix(f.Usage, "file ") {
				values = append(values, urls...)
			}
			for _, value := range values {
				settings := map[string]string{f.Name: value}
				maps.Copy(settings, beside[f.Name])
				try(value, settings)
			}
			if plain {
				return
			}
			for _, text := range []string{"\n  url: " + canary, " [{" + canary + ": x}]", ` "` + canary + ": x"} {
				try(text+" in the file", map[string]string{"config": writeFile(t, f.Name+":"+text+"\n"), f.Name: ""})
			}
		})
	})
	if tried < 150 || served < 10 {
		t.Errorf("%d values were tried, and %d servers served", tried, served)
	}
	for _, name := range plainSettings {
		if fs.Lookup(name) == nil {
			t.Errorf("no setting is called %s", name)
		}
	}
}

// selfSigned makes a certificate for this machine, and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")
	if err := certs.Issue(certs.Request{Name: "ca", CA: true, Hosts: []string{"127.0.0.1"}, For: time.Hour}, nil, cert, key); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// serverSays runs `ddq server` with settings in its environment, and returns all that it prints, and what
// it answers when it serves.
func serverSays(t *testing.T, settings map[string]string) string {
	t.Helper()
	all := map[string]string{"store": "memory", "grpc-addr": "127.0.0.1:0", "http-addr": "127.0.0.1:0", "log-level": "debug"}
	maps.Copy(all, settings)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answers := ""
	said := &toldServer{asked: make(chan struct{})}
	said.serving = func(port string) {
		defer cancel()
		defer close(said.asked)
		answers = answersOf(t.Context(), port)
	}
	var out bytes.Buffer
	code := Run(ctx, Streams{In: strings.NewReader(""), Out: &out, Err: said, Environ: variablesOf(all)}, []string{"server"})
	said.wait()
	return fmt.Sprintf("exit code %d\n%s%s%s", code, out.String(), said.all(), answers)
}

// configSaid is what `ddq server --print-config` prints with settings in its environment.
func configSaid(t *testing.T, settings map[string]string) string {
	t.Helper()
	got := ddqWith(t.Context(), "", variablesOf(settings), "server", "--print-config")
	if got.code == exitOK && got.out == "" {
		t.Error("no setting is printed")
	}
	return got.out + got.err
}

// variablesOf are settings as an environment has them.
func variablesOf(settings map[string]string) (environ []string) {
	for name, value := range settings {
		environ = append(environ, session.VariableOf(name)+"="+value)
	}
	return environ
}

// answersOf is what an HTTP port answers to those that look for settings.
func answersOf(ctx context.Context, port string) string {
	var answers strings.Builder
	for _, path := range []string{"/metrics", "/v1/server", "/v1/nodes", "/readyz", "/ui/settings", "/ui/nodes"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+port+path, nil)
		if err != nil {
			return err.Error()
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return answers.String()
		}
		_, _ = io.Copy(&answers, answer.Body)
		answer.Body.Close()
	}
	return answers.String()
}

// toldServer is what a server says on stderr.
type toldServer struct {
	serving func(port string) // called once, with the address of the HTTP port
	asked   chan struct{}     // closed by serving

	mu     sync.Mutex
	text   bytes.Buffer // guarded by mu
	served bool         // guarded by mu
}

var servingLine = regexp.MustCompile(`msg=serving .*http=(\S*)`)

func (s *toldServer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := servingLine.FindSubmatch(p); at != nil && !s.served {
		s.served = true
		go s.serving(string(at[1]))
	}
	return s.text.Write(p)
}

// wait returns once serving has, when it was called.
func (s *toldServer) wait() {
	s.mu.Lock()
	served := s.served
	s.mu.Unlock()
	if served {
		<-s.asked
	}
}

func (s *toldServer) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestASecretFileOfEverybodyIsRefused: whoever is on the machine would read it.
func TestASecretFileOfEverybodyIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	cert, key := selfSigned(t)
	for name, with := range map[string]map[string]string{
		"root-token":     {"auth": "token"},
		"encryption-key": nil,
		"gossip-key":     {"gossip-addr": "127.0.0.1:0", "advertise-addr": "127.0.0.1:1"},
		"tls-key":        {"tls-cert": cert},
		"store-key":      {"store": "rediss://127.0.0.1:1", "store-cert": cert},
	} {
		file, value := key, key
		if with["tls-cert"] == "" && with["store-cert"] == "" {
			file = writeFile(t, canary)
			value = "file:" + file
		}
		for _, mode := range []os.FileMode{0o644, 0o604, 0o602} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			settings := map[string]string{name: value}
			maps.Copy(settings, with)
			if said := serverSays(t, settings); !strings.Contains(said, "chmod 600") || !strings.HasPrefix(said, "exit code ") || strings.HasPrefix(said, "exit code 0") {
				t.Errorf("--%s of mode %v: %s", name, mode, said)
			}
		}
	}
}
