package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store/memstore"
)

// accessTable is what the server's table of who may do what says: cells by call and caller.
func accessTable(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../server/testdata/access.txt")
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	callers := strings.Fields(lines[0])[2:]
	table := make(map[string]map[string]string)
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		row := make(map[string]string)
		for i, caller := range callers {
			row[caller] = cells[1+i]
		}
		table[cells[0]] = row
	}
	return table
}

// bodies are those of requests that name their topic within.
var bodies = map[string]string{
	"EnqueueBatch":    `{"tasks":[{"topic":"mail"}]}`,
	"EnqueueStream":   `{"delay":"60s"}`,
	"PutSchedules":    `{"schedules":[{"schedule":{"topic":"mail"}}]}`,
	"SubmitWorkflow":  `{"workflow":{"topic":"mail"}}`,
	"SubmitWorkflows": `{"workflows":[{"topic":"mail"}]}`,
	"PreviewSchedule": `{"schedule":{"topic":"mail"}}`,
	"CreateTopic":     `{"name":"mail"}`,
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// ask is a request to a route about the topic mail.
func (rt *route) ask(ctx context.Context, t *testing.T, at string) *http.Request {
	t.Helper()
	path := placeholder.ReplaceAllStringFunc(rt.path, func(name string) string {
		switch {
		case name == "{name}", strings.HasSuffix(name, "topic}"):
			return "mail"
		case name == "{generation}":
			return "1"
		}
		return "x"
	})
	inPath := strings.Contains(rt.path, "topic}")
	named := rt.path == Prefix+"overview:watch" || rt.transcoded() && rt.input.Fields().ByName("topic") != nil && !inPath
	body := bodies[rt.rule.Call[strings.LastIndexByte(rt.rule.Call, '/')+1:]]
	switch {
	case rt.method == http.MethodGet || rt.method == http.MethodDelete:
		if body = ""; named {
			path += "?topic=mail"
		}
	case body == "" && named:
		body = `{"topic":"mail"}`
	case body == "" || inPath && rt.transcoded():
		body = "{}"
	}
	r, err := http.NewRequestWithContext(ctx, rt.method, at+path, strings.NewReader(body))
	must(t, err)
	switch {
	case strings.HasSuffix(path, ":import"):
		r.Header.Set("Content-Type", linesType)
	case body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// cell is what became of a request, as the table says it.
func (r *rig) cell(rt *route, header string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	request := rt.ask(ctx, r.T, r.url)
	if name, value, there := strings.Cut(header, ": "); there {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	must(r, err)
	defer answer.Body.Close()
	var text []byte
	if !strings.HasSuffix(rt.path, ":watch") || answer.StatusCode != http.StatusOK { // which may not end
		text, _ = io.ReadAll(answer.Body) // a refusal may come before the body of the request was read
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized, strings.Contains(string(text), `_CREDENTIALS"`): // of a line
		return "UNAUTH"
	case answer.StatusCode == http.StatusForbidden, strings.Contains(string(text), `"NOT_ALLOWED"`):
		return "DENIED"
	case answer.StatusCode == http.StatusMethodNotAllowed, strings.Contains(string(text), "NO_ROUTE"):
		r.Errorf("%s %s: %d %s", rt.method, rt.path, answer.StatusCode, text)
	}
	return "ok"
}

// Who may do what over HTTP is who may by gRPC: every route is held to the row of its call.
func TestRoutesAreHeldToTheTableOfCalls(t *testing.T) {
	table := accessTable(t)
	_, secret, _ := auth.NewToken()
	st := memstore.New()
	who, err := access.New(access.Config{On: true, Root: secret, Node: "node", Failures: 1 << 20}, st, slog.New(slog.DiscardHandler))
	must(t, err)
	who.Start(t.Context())
	t.Cleanup(who.Stop)
	s, port, url := serve(t, st, Config{}, who)
	asking, root := &rig{T: t, url: url, server: s, port: port}, bearer(secret.Reveal())
	asking.do("POST", "/v1/topics", `{"name":"mail"}`, root).want(201)

	type caller struct {
		name, header string
		rig          *rig
	}
	callers := []caller{{"anonymous", "", asking}, {"local", "", newRig(t, Config{})}}
	token := func(name, verb, topics string) made {
		m := makeToken(asking, "/v1/tokens", `{"name":"`+name+`","grants":[{"verbs":["`+verb+`"],"topics":"`+topics+`"}]}`, root)
		callers = append(callers, caller{name, bearer(m.Secret), asking})
		return m
	}
	asking.do("DELETE", "/v1/tokens/"+token("revoked", "admin", "mail*").Token.ID, "", root).want(204)
	for _, role := range []string{"producer", "worker", "viewer", "operator", "admin"} {
		token(role, role, "mail*")
	}
	token("sms", "admin", "sms")
	callers = append(callers, caller{"root", root, asking})

	for _, rt := range port.api.(*api).routes.all {
		if rt.rule.Public {
			continue
		}
		row := table[strings.TrimPrefix(rt.rule.Call, "/ddq.v1.")]
		if row == nil {
			t.Errorf("%s %s: no row of %s", rt.method, rt.path, rt.rule.Call)
			continue
		}
		for _, c := range callers {
			if got := c.rig.cell(rt, c.header); got != row[c.name] {
				t.Errorf("%s %s by %s: %s, and %s by gRPC", rt.method, rt.path, c.name, got, row[c.name])
			}
		}
	}
}
