package ui_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/node"
)

// asked are pages, and what else is asked for by a query, but for streams, which do not end.
var asked = []string{
	"", "changes", "dead", "dead/count", "dead/groups", "dryrun", "due", "login", "loglevel", "namespace", "nodes", "operation", "operations", "payload", "schedule", "schedule/backfill", "schedule/edit", "schedule/new",
	"schedule/preview", "schedules", "settings", "shards", "shards/map", "task", "tasks", "tasks/count", "topic", "topic/policy", "topic/reshard", "workers", "workflow", "workflows",
}

// params are the parameters of all of them.
var params = []string{
	"topic", "name", "id", "page", "state", "attribute", "before", "bucket_ms", "did", "drain", "error", "from", "to", "next", "of", "overlap", "reason", "every", "zone", "cron", "audience", "have",
	"alive", "window", "kind", "node", "version", "request", "cursor", "kinds", "due_from", "due_to", "shards", "count",
}

// strange are values that no form sends.
var strange = []string{
	"", "x", "-1", "0", "9223372036854775808", "1e309", "NaN", "\x00", "\xff\xfe", "a/b", "..", "}", "{t}", "<script>", "%", "%zz", "+", "2026-13-45T99:99", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
	"99999h", "-5m", "AAAA", "=", "a=b", "\u202e\u0130", strings.Repeat("x", 1000), "*/0 * * * *", "/ui/", "//example.com",
}

func startAsked(t testing.TB) (base string) {
	cfg := &node.Config{Store: node.Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", ShutdownGrace: time.Second}
	n, err := node.Start(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Enqueue(context.Background(), client.Task{Topic: "t", ID: "a", Delay: time.Hour, Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutSchedule(context.Background(), client.Schedule{Topic: "t", Name: "s", Every: time.Hour}); err != nil {
		t.Fatal(err)
	}
	return "http://" + n.HTTPAddr()
}

// look asks for a page, and fails when the answer is that the server is broken.
func look(t *testing.T, base, page, query string) (code int) {
	t.Helper()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/ui/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.URL.RawQuery = query
	reply, err := http.DefaultTransport.RoundTrip(ask)
	if err != nil {
		t.Errorf("%s?%.200q: %v", page, query, err)
		return 0
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	if reply.StatusCode >= 500 {
		t.Errorf("%s?%.200q: %s\n%.300s", page, query, reply.Status, text)
	}
	return reply.StatusCode
}

// TestNoQueryBreaksAPage: whatever a parameter is, by itself and beside good ones, the answer is a page or a refusal.
func TestNoQueryBreaksAPage(t *testing.T) {
	base := startAsked(t)
	shown := 0
	for _, page := range asked {
		if look(t, base, page, "topic=t&name=t&id=a&node=x") == http.StatusOK {
			shown++
		}
		for i, value := range strange {
			all := url.Values{}
			for _, name := range params {
				all.Set(name, value)
			}
			look(t, base, page, all.Encode())
			all.Set("topic", "t")
			look(t, base, page, all.Encode())
			name := params[i%len(params)]
			look(t, base, page, url.Values{"topic": {"t"}, "name": {"s"}, "id": {"a"}, name: {value, value}}.Encode())
		}
		for _, query := range []string{"%", "topic=%zz", "a;b", "&&&==", "topic=t&topic=u", strings.Repeat("x=1&", 2000)} {
			look(t, base, page, query)
		}
	}
	if shown < 15 {
		t.Errorf("only %d pages are shown", shown)
	}
}

func FuzzQuery(f *testing.F) {
	base := startAsked(f)
	for i := range asked {
		f.Add(uint8(i), "topic=t&name=s&id=a")
		f.Add(uint8(i), "topic=t&"+params[i%len(params)]+"="+url.QueryEscape(strange[i%len(strange)]))
	}
	f.Fuzz(func(t *testing.T, page uint8, query string) {
		if strings.ContainsAny(query, " #\x00\r\n\x7f") || strings.ContainsFunc(query, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Skip("no query of a request")
		}
		look(t, base, asked[int(page)%len(asked)], query)
	})
}
