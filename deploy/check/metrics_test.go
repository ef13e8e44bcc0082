package check

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
)

// fleetMetrics are those of nodes in a fleet; the server of these tests stands alone.
var fleetMetrics = []string{"ddq_cluster_members"}

// scraped are labels that Prometheus adds.
var scraped = []string{"job", "instance"}

// selectors returns every series that a query asks for.
func selectors(t *testing.T, query string) []*parser.VectorSelector {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			found = append(found, v)
		}
		return nil
	})
	return found
}

// parseMetrics returns the series of an exposition, with their label "__name__".
func parseMetrics(t *testing.T, text []byte) []labels.Labels {
	t.Helper()
	var all []labels.Labels
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry == textparse.EntrySeries {
			var l labels.Labels
			p.Labels(&l)
			all = append(all, l)
		}
	}
}

// exported reports whether a series is what v asks for. What Prometheus adds
// matches anything, and so does a label that is asked not to be something:
// nothing goes wrong in a test.
func exported(v *parser.VectorSelector, series []labels.Labels) bool {
	if v.Name == "up" || slices.Contains(fleetMetrics, v.Name) {
		return true
	}
	return slices.ContainsFunc(series, func(s labels.Labels) bool {
		return !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
			if slices.Contains(scraped, m.Name) {
				return false
			}
			if m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp {
				return !s.Has(m.Name)
			}
			return !s.Has(m.Name) || !m.Matches(s.Get(m.Name))
		})
	})
}

// queries are those of the alerts and of the dashboard.
func queries(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, g := range ruleGroups(t).Groups {
		for _, r := range g.Rules {
			all = append(all, r.Expr)
		}
	}
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			all = append(all, fillIn(q.Expr))
		}
	}
	return all
}

// TestEverySeriesIsExported compares what alerts and dashboard ask for with what
// a server in use gives: names, and values of labels.
func TestEverySeriesIsExported(t *testing.T) {
	var wanted []*parser.VectorSelector
	for _, q := range queries(t) {
		wanted = append(wanted, selectors(t, q)...)
	}
	if len(wanted) < 30 {
		t.Fatalf("only %d series are asked for: what became of the others?", len(wanted))
	}
	s := startServer(t)
	s.command(t, "topic", "create", "mail", "--concurrency", "5")
	s.command(t, "enqueue", "--topic", "mail", "--delay", "1h")
	s.command(t, "schedule", "put", "tick", "--topic", "mail", "--every", "1s", "--payload", "x")
	s.command(t, "audience", "create", "users")
	s.command(t, "audience", "put", "users", "ada")
	s.command(t, "schedule", "put", "digest", "--topic", "mail", "--every", "1s", "--audience", "users")
	s.command(t, "workflow", "submit", "--file", restingWorkflow(t))
	var missing []string
	// Cells are counted every half minute.
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		series := parseMetrics(t, s.get(t, "/metrics"))
		missing = nil
		for _, v := range wanted {
			if !exported(v, series) {
				missing = append(missing, v.String())
			}
		}
		if missing == nil {
			return
		}
		s.command(t, "topic", "describe", "mail") // the gauges of a topic follow its use
	}
	slices.Sort(missing)
	t.Errorf("no server exports\n%s", strings.Join(slices.Compact(missing), "\n"))
}

// restingWorkflow is the file of a workflow that ends by itself.
func restingWorkflow(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "order.yaml")
	if err := os.WriteFile(file, []byte("topic: mail\nname: order\nsteps: [{name: rest, wait: {delay: 1s}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestASeriesThatNobodyExportsIsFound(t *testing.T) {
	series := []labels.Labels{labels.FromStrings("__name__", "ddq_tasks_total", "event", "acked")}
	for query, want := range map[string]bool{
		`ddq_tasks_total{job="ddq", event="acked"}`: true,
		`ddq_tasks_total{event=~"acked|dead"}`:      true,
		`ddq_tasks_total{event!="dead"}`:            true,
		`ddq_tasks_total{event="aked"}`:             false,
		`ddq_tasks_total{topic="mail"}`:             false,
		`ddq_task_total`:                            false,
	} {
		if got := exported(selectors(t, query)[0], series); got != want {
			t.Errorf("%s: exported %v, want %v", query, got, want)
		}
	}
}

func TestHealthIsWhereTheProbesAsk(t *testing.T) {
	s := startServer(t)
	container := statefulSet(t).Spec.Template.Spec.Containers[0]
	for _, path := range []string{container.LivenessProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, container.StartupProbe.HTTPGet.Path} {
		s.get(t, path)
	}
	s.command(t, composeHealthcheck(t)...)
}
