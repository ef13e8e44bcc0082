package check

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// fleetMetrics are those of nodes in a fleet; the server of these tests stands alone.
var fleetMetrics = []string{"ddq_cluster_members"}

// scraped are labels that Prometheus adds.
var scraped = []string{"job", "instance"}

// series is what a query asks for: a name, and what labels are to be.
type series struct {
	name   string
	labels []metricsql.LabelFilter
	text   string
}

// selectors returns every series that a query asks for.
func selectors(t *testing.T, query string) []series {
	t.Helper()
	expr, err := metricsql.Parse(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var found []series
	metricsql.VisitAll(expr, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, all := range m.LabelFilterss {
			s := series{text: string(m.AppendString(nil))}
			for _, l := range all {
				if l.Label == "__name__" && !l.IsNegative && !l.IsRegexp {
					s.name = l.Value
				} else {
					s.labels = append(s.labels, l)
				}
			}
			if s.name == "" {
				t.Errorf("%s asks for series of any name", query)
			}
			found = append(found, s)
		}
	})
	return found
}

// parseMetrics returns the series of an exposition.
func parseMetrics(t *testing.T, text []byte) model.Vector {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// exported reports whether one of what a server exports is what s asks for. What Prometheus adds
// matches anything, and so does a label that is asked not to be something: nothing goes wrong in
// a test.
func (s series) exported(by model.Vector) bool {
	if s.name == "up" || slices.Contains(fleetMetrics, s.name) {
		return true
	}
	return slices.ContainsFunc(by, func(e *model.Sample) bool {
		return string(e.Metric[model.MetricNameLabel]) == s.name && !slices.ContainsFunc(s.labels, func(l metricsql.LabelFilter) bool {
			value, has := e.Metric[model.LabelName(l.Label)]
			switch {
			case slices.Contains(scraped, l.Label):
				return false
			case l.IsNegative:
				return !has
			case l.IsRegexp:
				return !has || !regexp.MustCompile("^(?:"+l.Value+")$").MatchString(string(value))
			}
			return !has || string(value) != l.Value
		})
	})
}

// queries are those of the alerts and of the dashboard.
func queries(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, g := range read[ruleGroups](t, "alerts.yml").Groups {
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
	var wanted []series
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
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		metrics := parseMetrics(t, s.get(t, "/metrics"))
		missing = nil
		for _, v := range wanted {
			if !v.exported(metrics) {
				missing = append(missing, v.text)
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
	metrics := parseMetrics(t, []byte("# TYPE ddq_tasks_total counter\nddq_tasks_total{event=\"acked\"} 1\n"+
		"# TYPE ddq_wait histogram\nddq_wait_bucket{le=\"+Inf\"} 1\nddq_wait_sum 1\nddq_wait_count 1\n"))
	for query, want := range map[string]bool{
		`ddq_tasks_total{job="ddq", event="acked"}`: true,
		`ddq_tasks_total{event=~"acked|dead"}`:      true,
		`ddq_tasks_total{event!="dead"}`:            true,
		`ddq_tasks_total{event="aked"}`:             false,
		`ddq_tasks_total{topic="mail"}`:             false,
		`ddq_task_total`:                            false,
		`rate(ddq_wait_bucket{le="+Inf"}[1m])`:      true,
		`ddq_wait`:                                  false,
	} {
		if got := selectors(t, query)[0].exported(metrics); got != want {
			t.Errorf("%s: exported %v, want %v", query, got, want)
		}
	}
}

func TestHealthIsWhereTheProbesAsk(t *testing.T) {
	s := startServer(t)
	container := pods(t).Containers[0]
	for _, path := range []string{container.LivenessProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, container.StartupProbe.HTTPGet.Path} {
		s.get(t, path)
	}
	s.command(t, composeHealthcheck(t)...)
}
