package ui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// TestAPageSaysWhoseNamespaceItShows, and settings list all of them for those who make them.
func TestAPageSaysWhoseNamespaceItShows(t *testing.T) {
	r, root := startAsking(t)
	access := ddqv1.NewAccessServiceClient(r.client.Conn())
	quotas := &ddqv1.Quotas{EnqueuePerSecond: proto.Float64(12.5), MaxPending: proto.Int64(1_000_000), MaxInFlight: proto.Int64(77)}
	if _, err := access.CreateNamespace(t.Context(), &ddqv1.CreateNamespaceRequest{Name: "acme", Quotas: quotas}); err != nil {
		t.Fatal(err)
	}
	r.enqueue(client.Task{Topic: "mail", ID: "ours", Delay: time.Hour})
	ann, err := access.CreateToken(t.Context(), &ddqv1.CreateTokenRequest{Name: "ann", Grants: []*ddqv1.Grant{{Verbs: []string{"operator"}, Namespace: "acme", Topics: "*"}}})
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := r.login(ann.Secret), r.login(root)
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/", nil, theirs); !strings.Contains(text, "ann in namespace acme") || strings.Contains(text, ">mail<") {
		t.Errorf("it is not theirs: %s", text)
	}
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/", nil, ours); strings.Contains(text, "in namespace") || !strings.Contains(text, ">mail<") {
		t.Errorf("it is not ours: %s", text)
	}
	text := r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, ours)
	for _, want := range []string{"<h2>Namespaces</h2>", ">acme<", ">default<", ">12.5<", ">77<", ">1\u202f000\u202f000<", "by root"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q: %s", want, text)
		}
	}
	if !strings.Contains(text, `href="/ui/namespace?name=acme"`) {
		t.Errorf("there is no link to the page of acme: %s", text)
	}
	if _, err := ddqv1.NewAccessServiceClient(r.client.Conn()).ConfigureNamespace(t.Context(), &ddqv1.ConfigureNamespaceRequest{Name: "default", Quotas: &ddqv1.Quotas{MaxPending: proto.Int64(5000), MaxSchedules: proto.Int64(9)}}); err != nil {
		t.Fatal(err)
	}
	text = r.want(http.StatusOK, http.MethodGet, "/ui/namespace?name=default", nil, ours)
	for _, want := range []string{"<dt>tasks that wait</dt>", " 1 of 5\u202f000</dd>", " 0 of 9</dd>", `<meter aria-hidden="true" min="0" max="5000" value="1">`, "<dt>worker streams</dt><dd>no bound</dd>"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q: %s", want, text)
		}
	}
	r.want(http.StatusNotFound, http.MethodGet, "/ui/namespace?name=nobody", nil, ours)
	r.want(http.StatusForbidden, http.MethodGet, "/ui/namespace?name=acme", nil, theirs)
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, theirs); strings.Contains(text, "<h2>Namespaces</h2>") || !strings.Contains(text, "<dd>acme</dd>") {
		t.Errorf("a tenant sees other tenants: %s", text)
	}
}
