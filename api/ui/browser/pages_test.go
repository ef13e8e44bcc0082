package browser

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew; read the diff")

// fixtures is a server with something on every page.
func fixtures(t *testing.T, args ...string) *server {
	t.Helper()
	s := start(t, append(args, "--audit-log", filepath.Join(t.TempDir(), "audit"))...)
	s.fill()
	return s
}

func (s *server) fill() {
	s.Helper()
	for i := range 40 {
		s.call("POST", "/v1/topics/mail/tasks", map[string]any{
			"id": fmt.Sprintf("welcome-%02d", i), "delay": fmt.Sprintf("%ds", 3600+i*i*7), "payload": base64.StdEncoding.EncodeToString([]byte(`{"to":"ann@example.com","template":"welcome"}`)),
			"attributes": []map[string]string{{"key": "customer", "value": "c-17"}},
		})
	}
	s.call("POST", "/v1/topics/sms/tasks", map[string]any{"id": "code-1", "max_retries": 0})
	s.kill("sms", "sender-1", "gateway: no route to +1 555 0100")
	s.fillChanges()
	s.call("POST", "/v1/namespaces", map[string]any{"name": "acme", "quotas": map[string]any{"enqueue_per_second": 200, "max_topics": "20", "max_in_flight": "50"}})
	s.call("PUT", "/v1/topics/report/schedules/nightly", map[string]any{
		"timetable": map[string]any{"entries": []map[string]any{{"cron": "30 2 * * *"}}, "zone": "Europe/Berlin"}, "task": map[string]any{},
	})
	step := func(name string, after ...string) map[string]any {
		all := []map[string]string{}
		for _, a := range after {
			all = append(all, map[string]string{"step": a})
		}
		return map[string]any{"name": name, "after": all, "task": map[string]any{}}
	}
	s.call("POST", "/v1/topics/orders/workflows", map[string]any{
		"id": "order-17", "name": "order", "steps": []map[string]any{
			step("reserve"), step("charge", "reserve"), {"name": "approval", "wait": map[string]any{"signal": "approved"}, "after": []map[string]string{{"step": "reserve"}}},
			step("pack", "charge", "approval"), step("invoice", "charge"), step("ship", "pack"), step("tell", "ship", "invoice"),
		},
	})
}

// fillChanges makes a topic that keeps what happens to its tasks, and an operation that is done.
func (s *server) fillChanges() {
	s.Helper()
	s.call("POST", "/v1/topics", map[string]any{"name": "watched", "policy": map[string]any{"watch_retention_ms": "3600000", "indexed_attributes": map[string]any{"names": []string{"tenant"}}}})
	for i := range 3 {
		s.call("POST", "/v1/topics/watched/tasks", map[string]any{"id": fmt.Sprint("visit-", i), "delay": "3600s", "attributes": []map[string]string{{"key": "tenant", "value": "acme"}}})
	}
	started := s.call("POST", "/v1/topics/watched/operations", map[string]any{"rate_per_s": "100", "delete_tasks": map[string]any{"filter": map[string]any{"id_prefix": "visit-2"}}})
	operation, _ := started["operation"].(map[string]any)
	s.operation = fmt.Sprint(operation["id"])
	for operation["ended_unix_ms"] == nil {
		got := s.call("GET", "/v1/topics/watched/operations/"+s.operation, nil)
		operation, _ = got["operation"].(map[string]any)
	}
}

// pages are those of the fixtures; ID stands for that of the operation. Those with a picture are in docs/ui.md.
var pages = []struct {
	name, path string
	picture    bool
}{
	{"topics", "/ui/", true},
	{"topic", "/ui/topic?name=mail", true},
	{"tasks", "/ui/tasks?topic=mail&state=scheduled&id=welcome-1", true},
	{"task", "/ui/task?topic=mail&id=welcome-00", true},
	{"failed", "/ui/task?topic=sms&id=code-1", true},
	{"dead", "/ui/dead?topic=sms", true},
	{"dead-groups", "/ui/dead/groups?topic=sms", true},
	{"wrong", "/ui/tasks?topic=mail&state=lost&due_from=2030-01-02T00:00&due_before=2030-01-01T00:00", false},
	{"changes", "/ui/changes?topic=watched", true},
	{"unwatched", "/ui/changes?topic=mail", false},
	{"operations", "/ui/operations?topic=watched", true},
	{"operation", "/ui/operation?topic=watched&id=ID", true},
	{"schedules", "/ui/schedules", true},
	{"due", "/ui/due?topic=report&from=2030-06-03T00:00&before=2030-06-04T00:00", true},
	{"schedule", "/ui/schedule?topic=report&name=nightly", true},
	{"schedule-new", "/ui/schedule/new?topic=report", true},
	{"schedule-edit", "/ui/schedule/edit?topic=report&name=nightly", false},
	{"backfill", "/ui/schedule/backfill?topic=report&name=nightly&from=2024-01-01T00:00&to=2024-01-20T12:00", true},
	{"dryrun", "/ui/dryrun?topic=report", true},
	{"workflows", "/ui/workflows", true},
	{"workflow", "/ui/workflow?topic=orders&id=order-17", true},
	{"nodes", "/ui/nodes", true},
	{"workers", "/ui/workers", true},
	{"shards", "/ui/shards?topic=sms", true},
	{"shards-map", "/ui/shards/map", true},
	{"settings", "/ui/settings", true},
	{"namespace", "/ui/namespace?name=acme", true},
	{"loglevel", "/ui/loglevel", true},
	{"audit", "/ui/audit", true},
	{"nothing", "/ui/nothing", false},
}

// layout is the page as text: what it is made of, and where blocks begin and how wide they are. It has
// no heights and no widths of text, which depend on fonts, and no hours of heat maps, which begin with now.
const layout = `(() => {
  const shown = new Set("HEADER NAV MAIN FOOTER H1 H2 FORM TABLE TH FIGURE DL DT OL PRE DETAILS SUMMARY BUTTON LABEL INPUT SELECT TEXTAREA SVG CAPTION".split(" "));
  const named = new Set("H1 H2 TH DT SUMMARY BUTTON CAPTION".split(" "));
  const placed = new Set("HEADER NAV MAIN FOOTER H1 H2 FIGURE OL PRE DIV".split(" "));
  const lines = [];
  (function walk(e, depth) {
    const box = e.getBoundingClientRect(), tag = e.tagName.toUpperCase(), region = e.getAttribute("role") === "region";
    let inner = depth;
    if ((shown.has(tag) || region) && e.checkVisibility() && box.width > 1 && !(tag === "TH" && (e.scope === "row" || e.closest(".heat")))) {
      let line = "  ".repeat(depth) + (region ? "region " + e.getAttribute("aria-label") : tag.toLowerCase());
      if (named.has(tag)) line += " " + [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).filter((t) => t).join(" ");
      if (placed.has(tag)) line += " at " + Math.round(box.left / 4) * 4 + " wide " + Math.round(box.width / 4) * 4;
      lines.push(line.trimEnd());
      inner++;
    }
    if (tag !== "SVG") for (const c of e.children) walk(c, inner);
  })(document.body, 0);
  return lines.join("\n") + "\n";
})()`

// TestPagesLookAsTheyDid at two widths, dark and light; and no page says anything on the console,
// breaks the policy of its own headers, asks another host, is wider than its window, or keeps somebody out.
func TestPagesLookAsTheyDid(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	for _, p := range pages {
		for _, width := range []int64{1280, 390} {
			var was string
			for _, scheme := range []string{"light", "dark"} {
				b.look(strings.Replace(p.path, "ID", s.operation, 1), width, scheme)
				if over := eval[int64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s at %d: %d pixels wider than the window", p.name, width, over)
				}
				got := eval[string](b, layout)
				if scheme == "dark" && got != was {
					t.Errorf("%s at %d: the layout depends on the colours", p.name, width)
				}
				was = got
				if dark := eval[bool](b, "getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'"); dark != (scheme == "dark") {
					t.Errorf("%s does not follow the colours of the system", p.name)
				}
				b.contrast(p.name + " " + scheme)
				if width > 390 || scheme == "light" { // colours do not depend on the width
					b.accessible(fmt.Sprint(p.name, " ", width, " ", scheme))
				}
			}
			compare(t, fmt.Sprintf("%s-%d.txt", p.name, width), was)
		}
		b.quiet()
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-rewrite writes it anew):\ngot\n%s\nwant\n%s", name, got, want)
	}
}

// contrast fails where text and ground differ by less than 4.5.
func (b *browser) contrast(where string) {
	b.Helper()
	low := eval[[]string](b, `(() => {
	  const rgb = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m; };
	  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
	  const low = [];
	  for (const e of document.body.querySelectorAll("*")) {
	    if (e.closest("svg") || !e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
	    const [x, y] = [light(rgb(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => b - a);
	    const ratio = (x + 0.05) / (y + 0.05);
	    if (ratio < 4.5) low.push(e.tagName + " " + e.textContent.trim().slice(0, 40) + " " + ratio.toFixed(2));
	  }
	  return low;
	})()`)
	for _, l := range low {
		b.Errorf("%s: too little contrast: %s", where, l)
	}
}

// hostile are texts that must be shown as what they are.
func hostile() (all []string) {
	seeds := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`, `javascript:alert(1)`, `</pre></main><h1>x</h1>`, `{{.}}`, `</textarea><script>alert(1)</script>`,
		"\u202etxt.exe", strings.Repeat("x", 200), `&lt;b&gt;`, `<!--`, `]]>`, `\x3cscript\x3e`, "😀", `</title><style>*{display:none}</style>`, `<a href=javascript:alert(1)>x</a>`,
		`<iframe src=//example.com>`, `<link rel=stylesheet href=//example.com/x.css>`, `<base href=//example.com/>`, `<form action=//example.com><button>x`, `<meta http-equiv=refresh content="0;url=//example.com">`,
		`${alert(1)}`, `' onfocus=alert(1) autofocus x='`, `" onmouseover="alert(1)`, "`onerror=alert(1)`",
	}
	for _, around := range []string{"%s", "a%s", "%sb", `"%s"`, "'%s'", "<b>%s", "</td>%s", "&%s;"} {
		for _, seed := range seeds {
			all = append(all, fmt.Sprintf(around, seed))
		}
	}
	return all
}

func TestHostileTextsAreShownAsTheyAre(t *testing.T) {
	s := start(t)
	texts := hostile()
	const each = 10
	for i := 0; i < len(texts); i += each {
		var attributes []map[string]string
		for j, text := range texts[i : i+each-2] {
			attributes = append(attributes, map[string]string{"key": fmt.Sprint("k", j), "value": text})
		}
		id, worker := fmt.Sprint("t", i/each), texts[i+each-2]
		s.call("POST", "/v1/topics/mail/tasks", map[string]any{
			"id": id, "max_retries": 0, "attributes": attributes, "payload": base64.StdEncoding.EncodeToString([]byte(texts[i+each-1])),
		})
		s.kill("mail", worker[:min(len(worker), 100)], texts[i+each-1])
	}
	long := strings.Repeat("x", 1<<20)
	for id, payload := range map[string]string{"long": long, "nul": strings.Repeat("a\x00", 1<<19)} {
		s.call("POST", "/v1/topics/mail/tasks", map[string]any{"id": id, "max_retries": 0, "payload": base64.StdEncoding.EncodeToString([]byte(payload))})
		s.kill("mail", "tester", payload[:1<<19])
	}
	b := open(t, s.base)
	for _, path := range []string{"/ui/dead?topic=mail", "/ui/dead/groups?topic=mail", "/ui/task?topic=mail&id=long", "/ui/task?topic=mail&id=nul"} {
		b.look(path, 390, "light")
		if over := eval[int64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s is %d pixels wider than the window", path, over)
		}
	}
	if got := eval[string](b, "document.querySelector('main').textContent"); !strings.Contains(got, "a\uFFFDa") {
		t.Errorf("an error with NUL is not shown: %.2000q", got)
	}
	for i := range len(texts) / each {
		b.look(fmt.Sprintf("/ui/task?topic=mail&id=t%d", i), 390, "light")
		for _, text := range texts[i*each : i*each+each-2] {
			if !eval[bool](b, fmt.Sprintf("[...document.querySelectorAll('dd')].some((d) => d.textContent.startsWith(%q.slice(0, 100)))", text)) {
				t.Errorf("%q is not shown", text)
			}
		}
		if over := eval[int64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("task %d is %d pixels wider than the window", i, over)
		}
		if n := eval[int64](b, "document.querySelectorAll('h1').length + document.scripts.length + document.querySelectorAll('img, iframe, style').length"); n != 2 {
			t.Errorf("a text of task %d is more than text", i)
		}
	}
	b.quiet()
}
