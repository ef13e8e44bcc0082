package check

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/ddq-io/ddq/bench/port"
)

// rehearsal runs the services of compose.yaml that are ddq as processes of this machine:
// with their commands and settings, on addresses and in a folder of the test.
type rehearsal struct {
	t        *testing.T
	services types.Services
	here     *strings.Replacer // what the file says, and where that is here
	done     map[string]bool
}

func newRehearsal(t *testing.T) *rehearsal {
	dir := t.TempDir()
	pairs := []string{"/var/lib/ddq", dir, "redis://redis:6379", "unix://" + startRedis(t)}
	for i, node := range composeNodes(t) {
		// An address of its own, as the names of the file have one.
		ip := fmt.Sprintf("127.0.41.%d", i+1)
		for _, number := range []string{"9090", "7946"} {
			pairs = append(pairs, node.Name+":"+number, freePort(t, ip))
		}
		pairs = append(pairs, node.Name, ip)
	}
	return &rehearsal{t: t, services: composeProject(t).Services, here: strings.NewReplacer(pairs...), done: map[string]bool{}}
}

// freePort is a port that nobody else on this machine is given until the test ends.
func freePort(t *testing.T, ip string) string {
	t.Helper()
	claim, err := port.New(ip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = claim.Release() })
	return claim.Addr()
}

func startRedis(t *testing.T) (socket string) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "redis.sock")
	command := slices.Clone(composeProject(t).Services["redis"].Command)
	start(t, exec.Command(command[0], append(command[1:], "--port", "0", "--unixsocket", socket, "--dir", dir)...))
	await(t, "redis", func() error {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err
	})
	return socket
}

// start runs a process until the test ends, and shows what it wrote when the test failed.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%v:\n%s", cmd.Args, out.String())
		}
	})
}

func await(t *testing.T, what string, ready func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ready(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// settings is the environment of a node, which listens on its own address.
func (r *rehearsal) settings(s types.ServiceConfig) []string {
	env := settingsOf(s)
	env["DDQ_GRPC_ADDR"], env["DDQ_GOSSIP_ADDR"] = env["DDQ_ADVERTISE_ADDR"], s.Name+":7946"
	env["DDQ_HTTP_ADDR"] = s.Name + ":0"
	env["DDQ_AUTH"] = "token" // as addresses that others reach have it
	env["DDQ_ADDR"] = env["DDQ_ADVERTISE_ADDR"]
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+r.here.Replace(env[name]))
	}
	return append(cleanEnv(), all...)
}

// run starts a service after those that it depends on.
func (r *rehearsal) run(name string) {
	r.t.Helper()
	s, ddqs := r.services[name], strings.HasPrefix(r.services[name].Image, "ddq:")
	if r.done[name] || !ddqs {
		return
	}
	r.done[name] = true
	for _, before := range slices.Sorted(maps.Keys(s.DependsOn)) {
		r.run(before)
	}
	if len(s.Command) == 0 {
		r.serve(s)
		return
	}
	for range 2 { // as at a second start
		r.command(cleanEnv(), s.Command...)
	}
}

func (r *rehearsal) serve(s types.ServiceConfig) {
	r.t.Helper()
	cmd := exec.Command(ddq, "server")
	cmd.Env = r.settings(s)
	start(r.t, cmd)
	await(r.t, s.Name, func() error {
		check := exec.Command(ddq, s.HealthCheck.Test[2:]...)
		check.Env = r.settings(s)
		out, err := check.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func (r *rehearsal) command(env []string, args ...string) string {
	r.t.Helper()
	for i := range args {
		args[i] = r.here.Replace(args[i])
	}
	cmd := exec.Command(ddq, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("ddq %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestComposeFleetIsSecure: the fleet of compose.yaml forms over TLS, makes its root token
// once, turns strangers away, and Prometheus reads figures with the token made for it.
func TestComposeFleetIsSecure(t *testing.T) {
	r := newRehearsal(t)
	for _, name := range slices.Sorted(maps.Keys(r.services)) {
		r.run(name)
	}
	nodes := composeNodes(t)
	first, last := r.settings(nodes[0]), r.settings(nodes[len(nodes)-1])
	root := "/var/lib/ddq/root-token"
	await(t, "a fleet of three", func() error {
		if list := r.command(first, "cluster", "nodes", "-o", "json", "--token-file", root); strings.Count(list, "\n") != len(nodes) {
			return fmt.Errorf("nodes: %s", list)
		}
		return nil
	})
	r.command(first, "token", "create", "mailer", "--grant", "producer,worker:mail*", "--secret-file", "/var/lib/ddq/mailer", "--token-file", root)
	r.command(last, "enqueue", "--topic", "mail", "--payload", "hello", "--token-file", "/var/lib/ddq/mailer")
	r.command(first, "work", "--topic", "mail", "--count", "1", "--token-file", "/var/lib/ddq/mailer")

	stranger := exec.Command(ddq, "topic", "list")
	stranger.Env = first
	if out, err := stranger.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("NO_CREDENTIALS")) {
		t.Errorf("without a token: %v, %s", err, out)
	}
}

// TestPrometheusMayRead: the credentials in prometheus.yml are those that compose.yaml makes.
func TestPrometheusMayRead(t *testing.T) {
	r := newRehearsal(t)
	node := composeNodes(t)[0]
	env := r.settings(node)
	addr := freePort(t, "127.0.41.1")
	for i, e := range env {
		if strings.HasPrefix(e, "DDQ_HTTP_ADDR=") {
			env[i] = "DDQ_HTTP_ADDR=" + addr
		}
	}
	r.run("certificate")
	cmd := exec.Command(ddq, "server")
	cmd.Env = env
	start(t, cmd)
	await(t, "the server", func() error {
		check := exec.Command(ddq, "health")
		check.Env = env
		return check.Run()
	})
	r.done[node.Name] = true
	r.run("prometheus-token")

	scraper := read[scrapeConfig](t, "prometheus.yml").ScrapeConfigs[0]
	of := func(file string) string { return r.here.Replace(strings.Replace(file, "/etc/ddq", "/var/lib/ddq", 1)) }
	token, err := os.ReadFile(of(scraper.Authorization.CredentialsFile))
	if err != nil {
		t.Fatal(err)
	}
	url := scraper.Scheme + "://" + addr + "/metrics"
	scrape(t, url, of(scraper.TLS.CAFile), "Bearer "+strings.TrimSpace(string(token)), http.StatusOK)
	scrape(t, url, of(scraper.TLS.CAFile), "", http.StatusUnauthorized)
}

func scrape(t *testing.T, url, caFile, authorization string, want int) {
	t.Helper()
	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(ca)
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}, Timeout: time.Minute}
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	reply, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != want || want == http.StatusOK && !bytes.Contains(body, []byte("ddq_")) {
		t.Errorf("%s: %s, %v, %d bytes", url, reply.Status, err, len(body))
	}
}

func TestComposeSecretsAreNotOfEverybody(t *testing.T) {
	r := newRehearsal(t)
	r.run("certificate")
	dir := r.here.Replace("/var/lib/ddq")
	for _, name := range []string{"ca.key", "ddq.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
