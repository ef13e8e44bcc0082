package check

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// prometheus has a command of promtool look at files in prometheus/, and returns what it finds.
func prometheus(args ...string) error {
	cmd := exec.Command("promtool", args...)
	cmd.Dir = "../prometheus"
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("promtool %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// ruleGroups is what the tests read of alerts.yml.
type ruleGroups struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

// scrapeConfig is what they read of prometheus.yml.
type scrapeConfig struct {
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		JobName string `yaml:"job_name"`
		Scheme  string
		TLS     struct {
			CAFile string `yaml:"ca_file"`
		} `yaml:"tls_config"`
		Authorization struct {
			CredentialsFile string `yaml:"credentials_file"`
		}
	} `yaml:"scrape_configs"`
}

// ruleTests is what they read of alerts_test.yml.
type ruleTests struct {
	Tests []struct {
		Alerts []struct {
			Name string     `yaml:"alertname"`
			Want []struct{} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// read decodes a file of prometheus/, which promtool has looked at.
func read[T any](t *testing.T, name string) T {
	t.Helper()
	var into T
	if err := yaml.Unmarshal(open(t, "prometheus/"+name), &into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return into
}

func TestScrapeConfig(t *testing.T) {
	// The files of certificate and token are in the fleet's volume.
	if err := prometheus("check", "config", "--syntax-only", "prometheus.yml"); err != nil {
		t.Fatal(err)
	}
	cfg := read[scrapeConfig](t, "prometheus.yml")
	if len(cfg.ScrapeConfigs) != 1 || cfg.ScrapeConfigs[0].JobName != "ddq" {
		t.Error("alerts and dashboard select by the job ddq")
	}
	if len(cfg.RuleFiles) != 1 || cfg.RuleFiles[0] != "alerts.yml" {
		t.Errorf("rule files %v", cfg.RuleFiles)
	}
}

// TestAlerts: the rules are well formed, and fire when alerts_test.yml says.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "--lint-fatal", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		if err := prometheus(args...); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryAlertIsTestedToFire(t *testing.T) {
	tested := map[string]bool{}
	for _, test := range read[ruleTests](t, "alerts_test.yml").Tests {
		for _, a := range test.Alerts {
			tested[a.Name] = tested[a.Name] || len(a.Want) > 0
		}
	}
	for _, g := range read[ruleGroups](t, "alerts.yml").Groups {
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
