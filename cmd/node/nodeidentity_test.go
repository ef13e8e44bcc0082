package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/port"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// secured are the settings of ports that ask for certificates of the authority in a folder.
func secured(dir, cert string, more ...string) []string {
	return append([]string{
		"--tls-cert", dir + "/" + cert + ".crt", "--tls-key", dir + "/" + cert + ".key", "--tls-ca", dir + "/ca.crt",
		"--tls-client-ca", dir + "/ca.crt", "--tls-client-auth", "request", "--root-token", "file:" + dir + "/root",
	}, more...)
}

func rootsOf(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	ca, err := os.ReadFile(dir + "/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return roots
}

func TestNodesAreKnownByTheirCertificates(t *testing.T) {
	dir := makeCerts(t)
	one := func(name, identity string, hosts ...string) []tls.Certificate {
		return []tls.Certificate{issue(t, dir, name, identity, hosts...)}
	}
	const ok, unknown, denied = codes.OK, codes.Unauthenticated, codes.PermissionDenied
	callers := map[string]struct {
		pairs []tls.Certificate
		want  codes.Code // where certificates of clients count
	}{
		"nothing":                   {nil, unknown},
		"URI":                       {one("a", "spiffe://prod/lone"), ok},
		"under a prefix":            {one("b", "spiffe://prod/ddq/n1"), ok},
		"the prefix itself":         {one("c", "spiffe://prod/ddq/"), unknown},
		"a longer word":             {one("d", "spiffe://prod/ddqx/n1"), denied},
		"longer than a whole one":   {one("e", "spiffe://prod/lone/n1"), denied},
		"another URI":               {one("f", "spiffe://prod/mailer"), denied},
		"traversal":                 {one("g", "spiffe://prod/ddq/../mailer"), unknown},
		"DNS name":                  {one("h", "", "node.example.com"), ok},
		"another DNS name":          {one("i", "", "mailer.example.com"), denied},
		"DNS name beside a URI":     {one("j", "spiffe://prod/mailer", "node.example.com"), denied},
		"common name alone":         {one("node.example.com", ""), unknown},
		"common name and DNS name":  {one("lone.example.com", "", "mailer.example.com"), denied},
		"an address":                {one("k", "", "127.0.0.1"), unknown},
		"wildcard":                  {one("l", "", "*.example.com"), unknown},
		"DNS name and what follows": {one("m", "", "node.example.com.evil.org"), denied},
	}
	for _, ways := range []string{"token", "token,mtls"} {
		cfg := configOf(t, secured(dir, "node", "--auth", ways, "--node-identity", "spiffe://prod/ddq/,spiffe://prod/lone", "--node-identity", "node.example.com,lone.example.com")...)
		n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range callers {
			want := c.want
			if ways == "token" && want == denied { // nobody but nodes is known by a certificate
				want = unknown
			}
			if got := askAsNode(t, n, dir, "", c.pairs...); got != want {
				t.Errorf("%s, %s: %v, want %v", ways, what, got, want)
			}
		}
		root, err := os.ReadFile(dir + "/root")
		if err != nil {
			t.Fatal(err)
		}
		if got := askAsNode(t, n, dir, "Bearer "+strings.TrimSpace(string(root)), callers["URI"].pairs...); got != denied {
			t.Errorf("%s, a token beside the certificate: %v", ways, got)
		}
		if got := askAsNode(t, n, dir, "DDQ-Node x", callers["URI"].pairs...); got != unknown {
			t.Errorf("%s, a bad credential beside the certificate: %v", ways, got)
		}
		if got := askAsNode(t, n, dir, "", issue(t, makeCerts(t), "stranger", "spiffe://prod/lone")); got != codes.Unavailable {
			t.Errorf("%s, of another authority: %v", ways, got)
		}
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// askAsNode is how a node answers what only nodes may ask.
func askAsNode(t *testing.T, n *Node, dir, authorization string, pairs ...tls.Certificate) codes.Code {
	t.Helper()
	conn, err := grpc.NewClient(n.GRPCAddr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: rootsOf(t, dir), Certificates: pairs})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := t.Context()
	if authorization != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", authorization)
	}
	_, err = ddqv1.NewPeerServiceClient(conn).DescribePeer(ctx, &ddqv1.DescribePeerRequest{})
	return status.Code(err)
}

func TestNodeIdentitiesThatCannotWork(t *testing.T) {
	dir := makeCerts(t)
	issue(t, dir, "ddq", "spiffe://prod/ddq/n1", "127.0.0.1")
	fleet := func(cert string, more ...string) []string {
		args := []string{"--store", "redis://127.0.0.1:1", "--grpc-addr", "127.0.0.1:9090", "--gossip-addr", "127.0.0.1:0", "--auth", "token"}
		return append(secured(dir, cert, args...), more...)
	}
	const key = "AAAAAAAAAAAAAAAAAAAAAA=="
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"nobody is asked":         {[]string{"--node-identity", "ddq"}, "needs --auth token"},
		"no certificates":         {[]string{"--node-identity", "ddq", "--auth", "token"}, "needs --tls-client-auth"},
		"a star":                  {secured(dir, "ddq", "--auth", "token", "--node-identity", "spiffe://prod/*"), "no plain URI"},
		"no host":                 {secured(dir, "ddq", "--auth", "token", "--node-identity", "spiffe://"), "no plain URI"},
		"wildcard":                {secured(dir, "ddq", "--auth", "token", "--node-identity", "*.example.com"), "neither a URI"},
		"e-mail":                  {secured(dir, "ddq", "--auth", "token", "--node-identity", "a@example.com"), "neither a URI"},
		"one of two":              {secured(dir, "ddq", "--auth", "token", "--node-identity", "spiffe://prod/ddq/,10.0.0.1"), "neither a URI"},
		"alone":                   {secured(dir, "node", "--auth", "token", "--node-identity", "spiffe://prod/ddq/"), ""},
		"a fleet":                 {fleet("ddq", "--node-identity", "spiffe://prod/ddq/"), ""},
		"another name":            {fleet("ddq", "--node-identity", "spiffe://prod/node/"), "would not know this one"},
		"no name":                 {fleet("node", "--node-identity", "spiffe://prod/ddq/"), "would not know this one"},
		"no name, but a key":      {fleet("node", "--node-identity", "spiffe://prod/ddq/", "--gossip-key", key), ""},
		"neither a name nor keys": {fleet("ddq"), "--node-identity"},
	} {
		err := configOf(t, c.args...).Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// startPair starts two nodes of a fleet, and returns the port of the first. more are further arguments of each.
func startPair(t *testing.T, more func(name string) []string) (port string) {
	t.Helper()
	db := redistest.Start(t).URL()
	var ports, gossip [2]string
	for i := range ports {
		ports[i], gossip[i] = claimed(t), claimed(t)
	}
	for i := range ports {
		name := fmt.Sprint("n", i)
		args := append(more(name), "--store", db, "--allow-volatile", "--http-addr", "off", "--node-name", name,
			"--grpc-addr", ports[i], "--gossip-addr", gossip[i], "--join", strings.Join(gossip[:], ","))
		n, err := Start(t.Context(), configOf(t, args...), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Stop() })
	}
	return ports[0]
}

// A fleet without a gossip key: what its nodes say to each other they say by their certificates.
func TestAFleetKnowsItsNodesByTheirCertificates(t *testing.T) {
	dir := makeCerts(t)
	addr := startPair(t, func(name string) []string {
		issue(t, dir, name, "spiffe://prod/ddq/"+name, "127.0.0.1")
		return secured(dir, name, "--auth", "token", "--node-identity", "spiffe://prod/ddq/")
	})
	root, err := os.ReadFile(dir + "/root")
	if err != nil {
		t.Fatal(err)
	}
	workInNamespaces(t, addr, client.Config{TLS: &tls.Config{RootCAs: rootsOf(t, dir)}, Token: strings.TrimSpace(string(root))})
}

// Nodes that ask nobody know each other by their addresses.
func TestNamespacesInAFleetThatAsksNobody(t *testing.T) {
	workInNamespaces(t, startPair(t, func(string) []string { return nil }), client.Config{})
}

// workInNamespaces works in two namespaces at one node of two, each of which owns shards of the topic of each.
func workInNamespaces(t *testing.T, addr string, config client.Config) {
	t.Helper()
	for _, namespace := range []string{"", "acme"} {
		if config.Namespace = namespace; namespace != "" {
			c := dialTo(t, addr, client.Config{TLS: config.TLS, Token: config.Token})
			if _, err := c.CreateNamespace(t.Context(), namespace, access.QuotaChange{}); err != nil {
				t.Fatal(err)
			}
		}
		c := dialTo(t, addr, config)
		const topic, shards = "mail", 8
		if _, err := c.CreateTopic(t.Context(), topic, client.Policy{Shards: new(shards)}); err != nil {
			t.Fatal(err)
		}
		until(t, "both nodes to be active and to answer each other", func() bool {
			nodes, err := c.Nodes(t.Context())
			return err == nil && len(nodes) == 2 && !slices.ContainsFunc(nodes, func(n client.Node) bool { return n.Load == nil || n.State != client.NodeActive })
		})
		workAtOneNode(t, c, topic)
		owners := map[string]bool{}
		for s, err := range c.Shards(t.Context(), topic) {
			if err != nil {
				t.Fatal(err)
			}
			owners[s.Owner] = true
		}
		if !owners["n0"] || !owners["n1"] {
			t.Errorf("shards in %q belong to %v, want some at each node", namespace, owners)
		}
	}
}

func dialTo(t *testing.T, addr string, config client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// workAtOneNode takes tasks of all shards over one connection: those of other nodes come by way of
// its node.
func workAtOneNode(t *testing.T, c *client.Client, topic string) {
	t.Helper()
	const tasks = 100
	for i := range tasks {
		if _, err := c.Enqueue(t.Context(), client.Task{Topic: topic, ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	came := map[string]bool{}
	_ = worker.New(c.Conn(), worker.Config{Topic: topic, Concurrency: 8}, worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
		mu.Lock()
		defer mu.Unlock()
		if came[task.ID] = true; len(came) == tasks {
			cancel()
		}
		return nil
	})).Run(ctx)
	if len(came) != tasks {
		t.Errorf("%d of %d tasks came", len(came), tasks)
	}
}

// claimed is an address for one server until the test ends.
func claimed(t *testing.T) string {
	t.Helper()
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claim.Release() })
	return claim.Addr()
}

// until waits for what takes a real server a moment.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited a minute for %s", what)
		}
	}
}
