package server

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/auth/oidc"
	"github.com/ddq-io/ddq/api/auth/oidc/oidctest"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store/memstore"
)

var rewriteAccess = flag.Bool("rewrite-access", false, "write testdata/access.txt anew")

// knowingRig is a guardedRig over TLS that knows callers by tokens, certificates and an issuer.
type knowingRig struct {
	*guardedRig
	dir    string // of the authority and of what it signed
	issuer *oidctest.Issuer
}

// knowingBubble runs test on a server that knows callers in every way there is, in fake time.
func knowingBubble(t *testing.T, test func(r *knowingRig), members ...fleet.Member) {
	synctest.Test(t, func(t *testing.T) {
		r := &knowingRig{dir: t.TempDir(), issuer: oidctest.New()}
		r.authority(t)
		r.issue(t, "node", "", "node")
		issuers, err := oidc.New(oidc.Config{Issuers: []string{r.issuer.URL}, Audience: oidctest.Audience, Transport: r.issuer}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		issuers.Start()
		defer issuers.Stop()
		own, err := certs.Open(certs.Files{Cert: r.file("node.crt"), Key: r.file("node.key"), ClientCA: r.file("ca.crt"), ClientAuth: tls.VerifyClientCertIfGiven, Min: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		who := access.Config{Bearers: issuers, Certificates: own, Nodes: auth.Subjects{"spiffe://prod/ddq/"}}
		config := Config{Options: []grpc.ServerOption{grpc.Creds(credentials.NewTLS(own.Server("h2")))}}
		guardedOver(t, r.secure(t, ""), who, config, func(guarded *guardedRig) {
			r.guardedRig = guarded
			test(r)
		}, members...)
	})
}

func (r *knowingRig) file(name string) string { return filepath.Join(r.dir, name) }

func (r *knowingRig) authority(t *testing.T) {
	t.Helper()
	if err := certs.Issue(certs.Request{Name: "ca", CA: true, For: 48 * time.Hour}, nil, r.file("ca.crt"), r.file("ca.key")); err != nil {
		t.Fatal(err)
	}
}

// issue makes a certificate with a URI, if it is not empty.
func (r *knowingRig) issue(t *testing.T, name, uri string, hosts ...string) {
	t.Helper()
	by, err := certs.Authority(r.file("ca.crt"), r.file("ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	request := certs.Request{Name: name, Hosts: hosts, For: 24 * time.Hour}
	if uri != "" {
		if request.URI, err = url.Parse(uri); err != nil {
			t.Fatal(err)
		}
	}
	if err := certs.Issue(request, by, r.file(name+".crt"), r.file(name+".key")); err != nil {
		t.Fatal(err)
	}
}

// secure is TLS with the certificate of that name; without one when it is empty.
func (r *knowingRig) secure(t *testing.T, name string) credentials.TransportCredentials {
	t.Helper()
	files := certs.Files{CA: r.file("ca.crt"), Min: tls.VersionTLS12}
	if name != "" {
		files.Cert, files.Key = r.file(name+".crt"), r.file(name+".key")
	}
	c, err := certs.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(c.Client("node"))
}

// certified is a connection with a certificate of its own, which has a URI.
func (r *knowingRig) certified(name, uri string) *grpc.ClientConn {
	r.Helper()
	r.issue(r.T, name, uri)
	return r.dial(r.secure(r.T, name))
}

// bind gives callers grants by a binding.
func (r *knowingRig) bind(b *ddqv1.Binding, grant string) {
	r.Helper()
	g, err := auth.ParseGrant(grant)
	if err != nil {
		r.Fatal(err)
	}
	b.Grants = grantsWire(auth.Grants{g})
	if _, err := ddqv1.NewAccessServiceClient(r.conn).PutBinding(r.as(r.root), &ddqv1.PutBindingRequest{Binding: b}); err != nil {
		r.Fatal(err)
	}
}

// caller is a column of the table.
type caller struct {
	name string
	conn *grpc.ClientConn
	ctx  func(method string) context.Context
}

// tenant makes a namespace, and a token of who may do everything there.
func (r *guardedRig) tenant(namespace string) (secret string) {
	r.Helper()
	access := ddqv1.NewAccessServiceClient(r.conn)
	if _, err := access.CreateNamespace(r.as(r.root), &ddqv1.CreateNamespaceRequest{Name: namespace}); err != nil {
		r.Fatal(err)
	}
	made, err := access.CreateToken(inNamespace(r.as(r.root), namespace), &ddqv1.CreateTokenRequest{Name: namespace, Grants: []*ddqv1.Grant{{Verbs: []string{"admin"}, Topics: "*"}}})
	if err != nil {
		r.Fatal(err)
	}
	return made.Secret
}

// callers are everybody there is: those of tokens first, and at the end those that bindings give grants to.
func (r *knowingRig) callers() (all []caller) {
	r.Helper()
	add := func(name string, conn *grpc.ClientConn, ctx func(method string) context.Context) {
		all = append(all, caller{name, conn, ctx})
	}
	token := func(name, secret string) { add(name, r.conn, func(string) context.Context { return r.as(secret) }) }
	expired, _ := r.token(time.Millisecond, "admin:mail*")
	revoked, id := r.token(0, "admin:mail*")
	if _, err := ddqv1.NewAccessServiceClient(r.conn).RevokeToken(r.as(r.root), &ddqv1.RevokeTokenRequest{Id: id}); err != nil {
		r.Fatal(err)
	}
	time.Sleep(time.Second) // one expires
	token("anonymous", "")
	token("expired", expired)
	token("revoked", revoked)
	for _, role := range []string{"producer", "worker", "viewer", "operator", "admin"} {
		secret, _ := r.token(0, role+":mail*")
		token(role, secret)
	}
	other, _ := r.token(0, "admin:sms")
	token("sms", other)
	tenant := r.tenant("acme")
	add("tenant", r.conn, func(string) context.Context { return inNamespace(r.as(tenant), "default") })
	auditor, _ := r.token(0, "auditor")
	token("auditor", auditor)
	token("root", r.root)
	add("node", r.conn, func(method string) context.Context {
		return metadata.AppendToOutgoingContext(r.Context(), "authorization", r.key.Sign("other", "node", method, time.Now()))
	})

	anonymous := func(string) context.Context { return r.Context() }
	add("nodecert", r.certified("other", "spiffe://prod/ddq/other"), anonymous)
	r.bind(&ddqv1.Binding{Name: "mailers", Subject: &ddqv1.Binding_Certificate{Certificate: "spiffe://prod/mail/"}}, "producer,worker:mail*")
	add("cert", r.certified("mailer", "spiffe://prod/mail/mailer"), anonymous)
	add("othercert", r.certified("texter", "spiffe://prod/sms/texter"), anonymous)
	r.bind(&ddqv1.Binding{Name: "ops", Subject: &ddqv1.Binding_Claim{Claim: &ddqv1.ClaimSubject{Issuer: r.issuer.URL, Name: "groups", Value: "ops"}}}, "operator:mail*")
	issued := func(groups ...string) func(string) context.Context {
		return func(string) context.Context { return r.as(r.issuer.Sign(r.issuer.Claims("alice", groups...))) }
	}
	add("oidc", r.conn, issued("dev", "ops"))
	add("otheroidc", r.conn, issued("dev"))
	return all
}

// localCells are what anybody may do who reaches a server that asks nobody, as one on loopback does, by method.
func localCells(t *testing.T) map[string]string {
	cells := make(map[string]string)
	synctest.Test(t, func(t *testing.T) {
		a, err := access.New(access.Config{Node: "node"}, memstore.New(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		a.Start(t.Context())
		defer a.Stop()
		r := newRig(t, Config{Access: a}, actors.Config{})
		defer r.close()
		must(r, simple(r))
		g := &guardedRig{rig: r, access: a}
		for _, method := range g.methods() {
			cells[method] = g.call(r.Context(), r.conn, method, "mail")
		}
	})
	return cells
}

// Who may do what: every method that the server has, by everybody there is. A method that is
// new has no row, and fails here.
func TestWhoMayDoWhat(t *testing.T) {
	var table strings.Builder
	line := func(cells []string) { table.WriteString(strings.TrimRight(strings.Join(cells, " "), " ") + "\n") }
	local := localCells(t)
	knowingBubble(t, func(r *knowingRig) {
		if _, err := r.admin.CreateTopic(r.as(r.root), &ddqv1.CreateTopicRequest{Name: "mail"}); err != nil {
			t.Fatal(err)
		}
		callers := r.callers()
		cells := []string{fmt.Sprintf("%-46s", "topic mail")}
		for _, c := range callers {
			cells = append(cells, fmt.Sprintf("%-9s", c.name))
		}
		cells = slices.Insert(cells, 2, fmt.Sprintf("%-9s", "local"))
		line(cells)
		for _, method := range r.methods() {
			cells := []string{fmt.Sprintf("%-46s", strings.TrimPrefix(method, "/ddq.v1."))}
			for _, c := range callers {
				cells = append(cells, fmt.Sprintf("%-9s", r.call(c.ctx(method), c.conn, method, "mail")))
			}
			cells = slices.Insert(cells, 2, fmt.Sprintf("%-9s", local[method]))
			line(cells)
		}
		for _, c := range callers {
			_ = c.conn.Close() // that of the rig may be closed twice
		}
	})
	const file = "testdata/access.txt"
	if *rewriteAccess {
		if err := os.WriteFile(file, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != table.String() {
		t.Errorf("%s differs (%v); read the difference and rewrite it with -rewrite-access:\n%s", file, err, table.String())
	}
}

// A certificate says that who calls is a node, and not which one. It does not make a worker of a node, nor a
// node of a client.
func TestNodesByCertificateNameThemselves(t *testing.T) {
	here := []netip.Addr{clientAddr.Addr()}
	members := []fleet.Member{
		{Name: "node", Addr: "10.0.0.1:9090", State: fleet.MemberActive},
		{Name: "other", Addr: "b:9090", State: fleet.MemberActive, Hosts: here},
		{Name: "far", Addr: "c:9090", State: fleet.MemberActive, Hosts: []netip.Addr{netip.MustParseAddr("10.0.0.9")}},
	}
	knowingBubble(t, func(r *knowingRig) {
		r.bind(&ddqv1.Binding{Name: "all", Subject: &ddqv1.Binding_Certificate{Certificate: "spiffe://prod/"}}, "worker")
		node, client := r.certified("other", "spiffe://prod/ddq/other"), r.certified("mailer", "spiffe://prod/mailer")
		defer node.Close()
		defer client.Close()
		for what, c := range map[string]struct {
			conn *grpc.ClientConn
			name string
			want string
		}{
			"a node":             {node, "other", "NO_TOPIC"},
			"from elsewhere":     {node, "far", "NOT_A_NODE"},
			"as this node":       {node, "node", "NOT_A_NODE"},
			"a node as a worker": {node, "", "NOT_A_NODE"},
			"a client as a node": {client, "other", "NOT_A_NODE"},
		} {
			r.queue = ddqv1.NewDelayQueueServiceClient(c.conn)
			if got := r.subscribe(r.Context(), c.name); got != c.want {
				t.Errorf("%s: %q, want %q", what, got, c.want)
			}
		}
	}, members...)
}
