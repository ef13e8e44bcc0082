package check

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

func composeProject(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml")}},
		Environment: types.Mapping{"DDQ_GOSSIP_KEY": gossipKey},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gossipKey is any: compose.yaml asks for one.
const gossipKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// composeNodes are the services that run servers.
func composeNodes(t *testing.T) []types.ServiceConfig {
	t.Helper()
	var nodes []types.ServiceConfig
	for _, s := range composeProject(t).Services {
		if strings.HasPrefix(s.Image, "ddq:") && len(s.Command) == 0 {
			nodes = append(nodes, s)
		}
	}
	if len(nodes) != 3 {
		t.Fatalf("%d nodes, want 3", len(nodes))
	}
	return nodes
}

func settingsOf(s types.ServiceConfig) map[string]string {
	env := map[string]string{}
	for k, v := range s.Environment {
		if v != nil {
			env[k] = *v
		}
	}
	return env
}

func TestComposeNodes(t *testing.T) {
	seen := map[string]bool{}
	made := newRehearsal(t)
	made.run("certificate")
	folder := made.here.Replace("/var/lib/ddq")
	for _, s := range composeNodes(t) {
		env := settingsOf(s)
		checkSettings(t, settingsAt(env, "/var/lib/ddq", folder))
		for _, own := range []string{env["DDQ_NODE_NAME"], env["DDQ_ADVERTISE_ADDR"]} {
			if own == "" || seen[own] {
				t.Errorf("%s: %q is empty, or of two nodes", s.Name, own)
			}
			seen[own] = true
		}
		if want := s.Name + ":9090"; env["DDQ_ADVERTISE_ADDR"] != want {
			t.Errorf("%s: others reach it at %s, not %s", s.Name, want, env["DDQ_ADVERTISE_ADDR"])
		}
		if !slices.Contains(strings.Split(env["DDQ_JOIN"], ","), s.Name+":7946") {
			t.Errorf("%s is not among those to join: %s", s.Name, env["DDQ_JOIN"])
		}
		checkGrace(t, s.Name, env["DDQ_SHUTDOWN_GRACE"], time.Duration(*s.StopGracePeriod))
		checkMemory(t, env["GOMEMLIMIT"], int64(s.MemLimit))
	}
}

// checkGrace wants more time before the kill than a server takes to stop: the
// grace, and 10 s to close.
func checkGrace(t *testing.T, name, grace string, kill time.Duration) {
	t.Helper()
	g, err := time.ParseDuration(grace)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if kill < g+15*time.Second {
		t.Errorf("%s is killed after %v, with a grace of %v", name, kill, g)
	}
}

// checkMemory wants the limit of the Go runtime, in MiB, below that of the container.
func checkMemory(t *testing.T, runtime string, container int64) {
	t.Helper()
	mib, err := strconv.ParseInt(strings.TrimSuffix(runtime, "MiB"), 10, 64)
	if err != nil {
		t.Fatalf("GOMEMLIMIT=%s: %v", runtime, err)
	}
	if mib<<20 > container*95/100 {
		t.Errorf("GOMEMLIMIT=%s leaves nothing of %d bytes", runtime, container)
	}
}

func TestComposePublishesOnLoopbackOnly(t *testing.T) {
	for _, s := range composeProject(t).Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s at %q", s.Name, p.Published, p.HostIP)
			}
		}
	}
}

func TestComposeFilesExist(t *testing.T) {
	for _, s := range composeProject(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		if s.Build != nil {
			if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		} else if !strings.HasPrefix(s.Image, "ddq:") && !pinned(s.Image) {
			t.Errorf("%s: image %s has no exact version", s.Name, s.Image)
		}
	}
}

// TestPrometheusScrapesEveryNode holds the targets against the services.
func TestPrometheusScrapesEveryNode(t *testing.T) {
	text := string(open(t, "prometheus/prometheus.yml"))
	for _, s := range composeNodes(t) {
		if !strings.Contains(text, `"`+s.Name+`:8080"`) {
			t.Errorf("%s is not scraped", s.Name)
		}
	}
}

// composeHealthcheck returns the arguments of ddq in the health check.
func composeHealthcheck(t *testing.T) []string {
	t.Helper()
	test := composeNodes(t)[0].HealthCheck.Test
	if len(test) < 3 || test[0] != "CMD" || test[1] != imageBinary {
		t.Fatalf("health check %q", test)
	}
	return test[2:]
}
