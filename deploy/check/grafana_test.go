package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dashboard is what the tests read of one.
type dashboard struct {
	UID        string
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct{ Name, Type, Query string }

func (v *variable) UnmarshalJSON(b []byte) error {
	var raw struct {
		Name, Type, Definition string
		Query                  any
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*v = variable{raw.Name, raw.Type, raw.Definition}
	if q, ok := raw.Query.(string); ok {
		v.Query = q
	}
	return nil
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource *datasource
	GridPos    struct{ X, Y, W, H int }
	Targets    []target
}

type target struct {
	RefID, Expr string
	Datasource  datasource
}

type datasource struct{ Type, UID string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(open(t, "grafana/dashboards/ddq.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// fillIn puts values where Grafana would.
func fillIn(query string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$instance", ".*", "$topic", ".*").Replace(query)
}

func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	checkQueries(t, d)
	if d.UID == "" {
		t.Error("no uid: links to it would break with every import")
	}
	if !slices.ContainsFunc(d.Templating.List, func(v variable) bool {
		return v.Name == "datasource" && v.Type == "datasource" && v.Query == "prometheus"
	}) {
		t.Error("no variable for the data source")
	}
	ids, panels := map[int]string{}, 0
	for i, p := range d.Panels {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("panel %q: id %d is also that of %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		for _, o := range d.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panel %q lies on %q", p.Title, o.Title)
			}
		}
		if p.Type != "row" {
			panels++
			checkPanel(t, p)
		}
	}
	if panels < 20 {
		t.Errorf("%d panels", panels)
	}
}

func checkPanel(t *testing.T, p panel) {
	t.Helper()
	if p.Datasource == nil || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
		t.Errorf("panel %q: data source %v, %d queries", p.Title, p.Datasource, len(p.Targets))
	}
	for _, q := range p.Targets {
		if q.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q, %s: data source %q", p.Title, q.RefID, q.Datasource.UID)
		}
		if strings.Contains(fillIn(q.Expr), "$") {
			t.Errorf("panel %q, %s: unknown variable in %s", p.Title, q.RefID, q.Expr)
		}
	}
}

// checkQueries has promtool look at each query, as the expression of a rule.
func checkQueries(t *testing.T, d dashboard) {
	t.Helper()
	var rules []map[string]string
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			rules = append(rules, map[string]string{"record": fmt.Sprintf("panel:%d:%s", p.ID, q.RefID), "expr": fillIn(q.Expr)})
		}
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.json") // JSON is YAML
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := prometheus("check", "rules", file); err != nil {
		t.Error(err)
	}
}
