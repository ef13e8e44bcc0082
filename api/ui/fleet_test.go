package ui_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui"
)

// TestATopicIsResharded after its name was typed, and the page says what is left in its former shards.
func TestATopicIsResharded(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour}, client.Task{Topic: "mail", ID: "b", Delay: time.Hour})
	const page, path = "/ui/shards?topic=mail", "/ui/topic/reshard"
	was := r.policy("mail").GetShards()
	for field, wrong := range map[string][]string{"shards": {"", "0", "257", "many", hostile[0]}, "sure": {"", "mial", hostile[1]}} {
		for _, text := range wrong {
			form := with(r.form(page, path), "shards", "7", "sure", "mail", field, text)
			got := r.want(http.StatusBadRequest, http.MethodPost, path, form, nil)
			r.has(got, `aria-invalid="true"`, "Nothing was changed.")
			if field == "sure" {
				r.has(got, `value="7"`)
			}
		}
	}
	if is := r.policy("mail").GetShards(); is != was {
		t.Errorf("%d shards became %d", was, is)
	}
	r.has(r.act(page, path, "shards", "7", "sure", "mail"), "New tasks go to the new shards", "A reshard is under way", "2 tasks wait in them", ">former<")
	if is := r.policy("mail").GetShards(); is != 7 {
		t.Errorf("%d shards", is)
	}
	r.want(http.StatusNotFound, http.MethodPost, path, url.Values{"topic": {"none"}, "sure": {"none"}, "shards": {"3"}}, nil)
	r.want(http.StatusBadRequest, http.MethodPost, path, url.Values{"sure": {"none"}, "shards": {"3"}}, nil)
	_, text := r.get(http.StatusOK, "/ui/shards/map")
	r.has(text, ">mail<", "How many shards of each topic a node owns")
}

// TestWhoMayNotReshard has no form for it, and is refused whatever they send.
func TestWhoMayNotReshard(t *testing.T) {
	r, _ := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	for _, role := range []string{"viewer", "operator", "admin:sms"} {
		_, secret := r.token("x", role)
		as := r.login(secret)
		for _, sure := range []string{"mail", "mial"} {
			r.want(http.StatusForbidden, http.MethodPost, "/ui/topic/reshard", url.Values{"topic": {"mail"}, "sure": {sure}, "shards": {"3"}}, as)
		}
		if role == "admin:sms" {
			continue
		}
		if text := r.want(http.StatusOK, http.MethodGet, "/ui/shards?topic=mail", nil, as); strings.Contains(text, "topic/reshard") {
			t.Errorf("%s sees it: %s", role, text)
		}
	}
	_, secret := r.token("ann", "admin:mail")
	r.has(r.want(http.StatusOK, http.MethodGet, "/ui/shards?topic=mail", nil, r.login(secret)), "topic/reshard")
}

// crowd is a server with many nodes, topics and shards, of which every third is on the move.
type crowd struct {
	grpc.ClientConnInterface
	nodes, topics int
}

func (c crowd) Invoke(_ context.Context, _ string, _, response any, _ ...grpc.CallOption) error {
	switch m := response.(type) {
	case *ddqv1.WhoAmIResponse:
		m.Grants = []*ddqv1.Grant{{Verbs: []string{"read"}, Namespace: "*", Topics: "*"}}
	case *ddqv1.ListNodesResponse:
		for i := range c.nodes {
			m.Nodes = append(m.Nodes, &ddqv1.Node{Name: fmt.Sprint("n", i)})
		}
	case *ddqv1.ListShardsResponse:
		m.NextPageToken = "more"
		for i := range c.topics {
			s := &ddqv1.Shard{Topic: fmt.Sprint("t", i, hostile[0]), Owner: fmt.Sprint("n", i%c.nodes)}
			if s.PlacedOn = s.Owner; i%3 == 0 {
				s.PlacedOn = hostile[1]
			}
			m.Shards = append(m.Shards, s)
		}
	}
	return nil
}

// TestAMapOfManyShardsIsBounded in nodes, topics and moves.
func TestAMapOfManyShardsIsBounded(t *testing.T) {
	pages := ui.New(crowd{nodes: 300, topics: 1000}, nobody{}, "", slog.New(slog.DiscardHandler))
	t.Cleanup(pages.Close)
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui/shards/map", nil))
	text := w.Body.String()
	(&rig{T: t}).has(text, "There are more shards than these", "are on the move", "and others")
	if w.Code != http.StatusOK || len(text) > 1<<20 || strings.Count(text, "<tr>") != 201 || strings.Contains(text, hostile[0]) {
		t.Errorf("%d, %d bytes, %d rows", w.Code, len(text), strings.Count(text, "<tr>"))
	}
}
