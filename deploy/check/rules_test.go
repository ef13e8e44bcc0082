package check

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

const ruleFile = "../prometheus/alerts.yml"

var quiet = slog.New(slog.DiscardHandler)

func ruleGroups(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(ruleFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), quiet)
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	return groups
}

func TestScrapeConfig(t *testing.T) {
	cfg, err := config.LoadFile("../prometheus/prometheus.yml", false, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.ScrapeConfigs) != 1 || cfg.ScrapeConfigs[0].JobName != "ddq" {
		t.Error("alerts and dashboard select by the job ddq")
	}
	if len(cfg.RuleFiles) != 1 || !strings.HasSuffix(cfg.RuleFiles[0], "prometheus/alerts.yml") {
		t.Errorf("rule files %v", cfg.RuleFiles)
	}
}

// ruleTests is what alerts_test.yml uses of promtool's format.
type ruleTests struct {
	RuleFiles          []string       `json:"rule_files"`
	EvaluationInterval model.Duration `json:"evaluation_interval"`
	Tests              []ruleTest     `json:"tests"`
}

type ruleTest struct {
	Name     string         `json:"name"`
	Interval model.Duration `json:"interval"`
	Input    []struct {
		Series string `json:"series"`
		Values string `json:"values"`
	} `json:"input_series"`
	Alerts []alertTest `json:"alert_rule_test"`
}

type alertTest struct {
	At   model.Duration `json:"eval_time"`
	Name string         `json:"alertname"`
	Want []firing       `json:"exp_alerts"`
}

type firing struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

func (f firing) String() string { return fmt.Sprintf("%v %v", f.Labels, f.Annotations) }

func readRuleTests(t *testing.T) ruleTests {
	t.Helper()
	var all ruleTests
	if err := yaml.UnmarshalStrict(open(t, "prometheus/alerts_test.yml"), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAlerts does what promtool test rules does.
func TestAlerts(t *testing.T) {
	all := readRuleTests(t)
	for _, test := range all.Tests {
		t.Run(test.Name, func(t *testing.T) { test.run(t, time.Duration(all.EvaluationInterval)) })
	}
}

func TestEveryAlertIsTestedToFire(t *testing.T) {
	tested := map[string]bool{}
	for _, test := range readRuleTests(t).Tests {
		for _, a := range test.Alerts {
			tested[a.Name] = tested[a.Name] || len(a.Want) > 0
		}
	}
	for _, g := range ruleGroups(t).Groups {
		for _, r := range g.Rules {
			if !tested[r.Alert] {
				t.Errorf("no test makes %s fire", r.Alert)
			}
			delete(tested, r.Alert)
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: says too little", r.Alert)
			}
		}
	}
	for name := range tested {
		t.Errorf("tests name an alert that is none: %s", name)
	}
}

func (test *ruleTest) run(t *testing.T, step time.Duration) {
	series := test.load(t)
	group := loadGroup(t, series, step)
	slices.SortStableFunc(test.Alerts, func(a, b alertTest) int { return int(a.At - b.At) })
	for at, rest := time.Duration(0), test.Alerts; len(rest) > 0; at += step {
		series.WithSamplesTill(time.Unix(0, 0).Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			group.Eval(series.Context(), time.Unix(0, 0).Add(at))
		})
		for ; len(rest) > 0 && time.Duration(rest[0].At) <= at; rest = rest[1:] {
			rest[0].check(t, group)
		}
	}
}

// load gives the input to a store that reveals it minute by minute.
func (test *ruleTest) load(t *testing.T) *promqltest.LazyLoader {
	t.Helper()
	var input strings.Builder
	fmt.Fprintf(&input, "load %v\n", test.Interval)
	for _, s := range test.Input {
		fmt.Fprintf(&input, "  %s %s\n", s.Series, s.Values)
	}
	series, err := promqltest.NewLazyLoader(input.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := series.Close(); err != nil {
			t.Error(err)
		}
	})
	return series
}

func loadGroup(t *testing.T, series *promqltest.LazyLoader, step time.Duration) *rules.Group {
	t.Helper()
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(series.QueryEngine(), series.Storage()),
		Appendable: series.Storage(),
		Context:    t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     quiet,
		Parser:     parser.NewParser(parser.Options{}),
	})
	groups, errs := m.LoadGroups(step, labels.EmptyLabels(), "", nil, false, ruleFile)
	if len(errs) > 0 || len(groups) != 1 {
		t.Fatalf("%d groups, %v", len(groups), errs)
	}
	return slices.Collect(maps.Values(groups))[0]
}

// check compares what fires with what should.
func (a alertTest) check(t *testing.T, group *rules.Group) {
	t.Helper()
	var got, want []string
	for _, r := range group.Rules() {
		if err := r.LastError(); err != nil {
			t.Errorf("%s: %v", r.Name(), err)
		}
		alert, ok := r.(*rules.AlertingRule)
		if !ok || alert.Name() != a.Name {
			continue
		}
		for _, f := range alert.ActiveAlerts() {
			if f.State == rules.StateFiring {
				got = append(got, firing{f.Labels.Map(), f.Annotations.Map()}.String())
			}
		}
	}
	for _, f := range a.Want {
		f.Labels["alertname"] = a.Name
		want = append(want, f.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("at %v %s:\n got %q\nwant %q", a.At, a.Name, got, want)
	}
}
