package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/auth/oidc/oidctest"
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// issue makes the certificate of a client, or of a server at hosts, under the authority in a folder.
func issue(t *testing.T, dir, name, identity string, hosts ...string) tls.Certificate {
	t.Helper()
	by, err := certs.Authority(dir+"/ca.crt", dir+"/ca.key")
	if err != nil {
		t.Fatal(err)
	}
	r := certs.Request{Name: name, Hosts: hosts, For: time.Hour}
	if identity != "" {
		if r.URI, err = url.Parse(identity); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := certs.Issue(r, by, cert, key); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// knowing is a server that knows callers by tokens, certificates and an issuer.
type knowing struct {
	*testing.T
	node  *Node
	dir   string
	roots *x509.CertPool
	root  string
	from  *oidctest.Issuer
}

func newKnowing(t *testing.T) *knowing {
	t.Helper()
	from, dir := oidctest.New(), makeCerts(t)
	web := httptest.NewTLSServer(from)
	t.Cleanup(web.Close)
	from.URL = web.URL
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(dir+"/issuer.crt", authority, 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Start(context.Background(), configOf(t, "--tls-cert", dir+"/node.crt", "--tls-key", dir+"/node.key",
		"--tls-client-ca", dir+"/ca.crt", "--tls-client-auth", "request", "--auth", "token,oidc,mtls", "--root-token", "file:"+dir+"/root",
		"--oidc-issuer", from.URL, "--oidc-audience", oidctest.Audience, "--oidc-ca", dir+"/issuer.crt"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	root, err := os.ReadFile(dir + "/root")
	if err != nil {
		t.Fatal(err)
	}
	return &knowing{t, n, dir, rootsOf(t, dir), strings.TrimSpace(string(root)), from}
}

// as is a client with a token, a certificate, or nothing.
func (k *knowing) as(token string, pairs ...tls.Certificate) *client.Client {
	k.Helper()
	c, err := client.Dial(k.node.GRPCAddr(), client.Config{TLS: &tls.Config{RootCAs: k.roots, Certificates: pairs}, Token: token, MaxElapsed: -1})
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = c.Close() })
	return c
}

// get is what the HTTP port answers.
func (k *knowing) get(path, token string, pairs ...tls.Certificate) (int, string) {
	k.Helper()
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: k.roots, Certificates: pairs}}}
	defer web.CloseIdleConnections()
	r, err := http.NewRequestWithContext(k.Context(), http.MethodGet, "https://"+k.node.HTTPAddr()+path, http.NoBody)
	if err != nil {
		k.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := web.Do(r)
	if err != nil {
		k.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		k.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestCallersAreKnownByCertificatesAndIssuers(t *testing.T) {
	k := newKnowing(t)
	root := k.as(k.root)
	grants := []access.Grant{{Verbs: []string{"producer", "viewer"}, Namespace: "default", Topics: "mail*"}}
	for _, b := range []access.Binding{
		{Name: "certs", Certificate: "spiffe://prod/mail/", Grants: grants},
		{Name: "ops", Claim: &access.Claim{Issuer: k.from.URL, Name: "groups", Value: "ops"}, Grants: grants},
	} {
		if _, err := root.PutBinding(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	mailer := issue(t, k.dir, "mailer", "spiffe://prod/mail/a")
	token := k.from.Sign(k.from.Claims("alice", "ops"))
	for name, who := range map[string]struct {
		client *client.Client
		token  string
		pairs  []tls.Certificate
		kind   string // empty: it is not known
		may    bool
	}{
		"certificate":                        {k.as("", mailer), "", []tls.Certificate{mailer}, "certificate", true},
		"certificate of another":             {nil, "", []tls.Certificate{issue(t, k.dir, "sms", "spiffe://prod/sms/a")}, "certificate", false},
		"certificate with a common name":     {nil, "", []tls.Certificate{issue(t, k.dir, "spiffe", "")}, "", false},
		"token of the issuer":                {nil, token, nil, "oidc", true},
		"token of the issuer, other group":   {nil, k.from.Sign(k.from.Claims("bob", "dev")), nil, "oidc", false},
		"token and certificate: the token":   {nil, k.from.Sign(k.from.Claims("bob", "dev")), []tls.Certificate{mailer}, "oidc", false},
		"bad token and certificate: neither": {nil, token[:len(token)-8], []tls.Certificate{mailer}, "", false},
		"nothing":                            {nil, "", nil, "", false},
	} {
		c := who.client
		if c == nil {
			c = k.as(who.token, who.pairs...)
		}
		p, err := c.WhoAmI(t.Context())
		if p.Kind != who.kind || (who.kind == "") != errors.Is(err, client.ErrDenied) {
			t.Errorf("%s over gRPC: %+v, %v", name, p, err)
		}
		_, err = c.Enqueue(t.Context(), client.Task{Topic: "mail", Delay: time.Hour})
		if (err == nil) != who.may {
			t.Errorf("%s enqueues over gRPC: %v", name, err)
		}
		status, text := k.get("/v1/whoami", who.token, who.pairs...)
		if (status == http.StatusOK) != (who.kind != "") || who.kind != "" && !strings.Contains(text, `"`+who.kind+`"`) {
			t.Errorf("%s over HTTP: %d %s", name, status, text)
		}
		want := http.StatusOK
		switch {
		case who.kind == "":
			want = http.StatusUnauthorized
		case !who.may:
			want = http.StatusForbidden
		}
		if status, text := k.get("/v1/topics/mail", who.token, who.pairs...); status != want {
			t.Errorf("%s sees a topic over HTTP: %d %s", name, status, text)
		}
	}
	all, err := root.ListBindings(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "certs" || all[1].Claim.Value != "ops" || all[0].CreatedBy != "root" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := root.DeleteBinding(t.Context(), "certs"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.as("", mailer).Enqueue(t.Context(), client.Task{Topic: "mail"}); !errors.Is(err, client.ErrDenied) {
		t.Errorf("without its binding: %v", err)
	}
	if err := root.DeleteBinding(t.Context(), "certs"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a binding that is gone: %v", err)
	}
}

// What a certificate opened ends with its binding.
func TestStreamsEndWithTheirBinding(t *testing.T) {
	k := newKnowing(t)
	root := k.as(k.root)
	b := access.Binding{Name: "certs", Certificate: "spiffe://prod/mail/", Grants: []access.Grant{{Verbs: []string{"producer"}, Namespace: "default", Topics: "mail"}}}
	if _, err := root.PutBinding(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	secure := credentials.NewTLS(&tls.Config{RootCAs: k.roots, Certificates: []tls.Certificate{issue(t, k.dir, "mailer", "spiffe://prod/mail/a")}})
	conn, err := grpc.NewClient(k.node.GRPCAddr(), grpc.WithTransportCredentials(secure))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := ddqv1.NewDelayQueueServiceClient(conn).EnqueueStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&ddqv1.EnqueueStreamRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "mail"}}}); err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.Results[0].GetError() != nil {
		t.Fatalf("%v, %v", answer, err)
	}
	if err := root.DeleteBinding(t.Context(), b.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestStrangersCertificatesAreRefusedAtTheHandshake(t *testing.T) {
	k := newKnowing(t)
	other := makeCerts(t)
	if _, err := k.as("", issue(t, other, "mailer", "spiffe://prod/mail/a")).WhoAmI(t.Context()); err == nil || errors.Is(err, client.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

func TestWaysToAuthenticateThatCannotWork(t *testing.T) {
	dir := makeCerts(t)
	secure := []string{"--tls-cert", dir + "/node.crt", "--tls-key", dir + "/node.key"}
	issuer := []string{"--oidc-issuer", "https://issuer.test", "--oidc-audience", "ddq"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown":                  {[]string{"--auth", "token,basic"}, "--auth is token or off"},
		"off with another":         {[]string{"--auth", "off,token"}, "goes with nothing else"},
		"no token":                 {append(issuer, "--auth", "oidc"), "--auth token,oidc"},
		"mtls without TLS":         {[]string{"--auth", "token,mtls"}, "--tls-client-auth"},
		"mtls that asks nobody":    {append(secure, "--auth", "token,mtls"), "--tls-client-auth"},
		"oidc without an issuer":   {[]string{"--auth", "token,oidc"}, "no issuer"},
		"oidc without an audience": {[]string{"--auth", "token,oidc", "--oidc-issuer", "https://issuer.test"}, "no audience"},
		"plain issuer":             {[]string{"--auth", "token,oidc", "--oidc-issuer", "http://issuer.test", "--oidc-audience", "ddq"}, "no https URL"},
		"symmetric":                {append(issuer, "--auth", "token,oidc", "--oidc-alg", "HS256"), "HS256"},
		"issuer without oidc":      {append(issuer, "--auth", "token"), "need --auth token,oidc"},
		"no authority":             {append(issuer, "--auth", "token,oidc", "--oidc-ca", dir+"/none"), "--oidc-ca"},
		"authority of nothing":     {append(issuer, "--auth", "token,oidc", "--oidc-ca", dir+"/node.key"), "no certificate"},
		"unknown mode":             {[]string{"--auth", "token", "--auth-mode", "warn"}, "--auth-mode is enforce or observe"},
		"observing nobody":         {[]string{"--auth-mode", "observe"}, "needs --auth token"},
		"observing the world":      {append(secure, "--auth", "token", "--auth-mode", "observe", "--grpc-addr", "0.0.0.0:0"), "--auth-mode enforce"},
		"all of it":                {append(issuer, "--auth", "token,oidc"), ""},
	} {
		err := configOf(t, c.args...).Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServersTellWhatIsLessSafe(t *testing.T) {
	dir := makeCerts(t) // which are valid for an hour
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"this machine": {nil, nil},
		"insecure":     {[]string{"--insecure"}, []string{"insecure is set"}},
		"plaintext":    {[]string{"--plaintext", "--auth", "token", "--root-token", "file:" + dir + "/root"}, []string{"plaintext is set"}},
		"observing":    {[]string{"--auth", "token", "--auth-mode", "observe", "--root-token", "file:" + dir + "/root"}, []string{"auth-mode observe is set"}},
		"certificate":  {[]string{"--tls-cert", dir + "/node.crt", "--tls-key", dir + "/node.key"}, []string{"node.crt expires at"}},
	} {
		n, err := Start(t.Context(), configOf(t, c.args...), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		config := client.Config{MaxElapsed: -1}
		if n.cfg.TLS.on() {
			config.TLS = &tls.Config{RootCAs: rootsOf(t, dir)}
		}
		if n.cfg.Auth.on() {
			root, err := os.ReadFile(dir + "/root")
			if err != nil {
				t.Fatal(err)
			}
			config.Token = strings.TrimSpace(string(root))
		}
		k, err := client.Dial(n.GRPCAddr(), config)
		if err != nil {
			t.Fatal(err)
		}
		status, err := k.Server(t.Context())
		said := slices.DeleteFunc(status.Warnings, func(w string) bool { return strings.Contains(w, "store") || strings.Contains(w, "memory") })
		if err != nil || len(said) != len(c.want) {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		for i := range min(len(said), len(c.want)) {
			if !strings.Contains(said[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, said[i], c.want[i])
			}
		}
		_ = k.Close()
		_ = n.Stop()
	}
}

// A server that observes takes anybody in, and counts them.
func TestAServerObserves(t *testing.T) {
	n, err := Start(t.Context(), configOf(t, "--auth", "token", "--auth-mode", "observe", "--root-token", "file:"+t.TempDir()+"/root"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Stop() }()
	k, err := client.Dial(n.GRPCAddr(), client.Config{MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Enqueue(t.Context(), client.Task{Topic: "mail", Delay: time.Hour}); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"/v1/topics": `"mail"`,
		"/metrics":   `ddq_auth_observed_refusals_total{reason="NO_CREDENTIALS"}`,
	} {
		answer, err := http.Get("http://" + n.HTTPAddr() + path) //nolint:noctx // a test's
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d, %v, without %s", path, answer.StatusCode, err, want)
		}
	}
}
