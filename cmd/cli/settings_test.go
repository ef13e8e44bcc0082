package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
	"github.com/ddq-io/ddq/store"
)

// resolved returns what a server is configured with by a command line, an
// environment and a file.
func resolved(t *testing.T, file string, environ []string, args ...string) (*node.Config, error) {
	t.Helper()
	c := newCLI(Streams{Environ: environ})
	cfg := &node.Config{}
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	cfg.Flags(fs)
	common := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.commonFlags(common)
	fs.AddFlagSet(common) // as a command has those of its parents, but for names of its own
	if file != "" {
		args = append(args, "--config", writeFile(t, file))
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return cfg, c.resolve(fs)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ddq.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSettingPrecedence(t *testing.T) {
	file := "grpc-addr: 127.0.0.1:1\n"
	env := []string{"DDQ_GRPC_ADDR=127.0.0.1:2"}
	for _, tc := range []struct {
		name string
		file string
		env  []string
		args []string
		want string
	}{
		{"default", "", nil, nil, "127.0.0.1:9090"},
		{"file over default", file, nil, nil, "127.0.0.1:1"},
		{"environment over file", file, env, nil, "127.0.0.1:2"},
		{"flag over environment", file, env, []string{"--grpc-addr", "127.0.0.1:3"}, "127.0.0.1:3"},
		{"flag at its default over environment", file, env, []string{"--grpc-addr", "127.0.0.1:9090"}, "127.0.0.1:9090"},
		{"empty variable counts as unset", file, []string{"DDQ_GRPC_ADDR="}, nil, "127.0.0.1:1"},
		{"empty value in the file counts as unset", "grpc-addr:\n", nil, nil, "127.0.0.1:9090"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := resolved(t, tc.file, tc.env, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.GRPCAddr != tc.want {
				t.Errorf("grpc-addr = %q, want %q", cfg.GRPCAddr, tc.want)
			}
		})
	}
}

func TestSettingsOfEveryKind(t *testing.T) {
	cfg, err := resolved(t, `
store: redis://127.0.0.1:7777
shutdown-grace: 1m30s
allow-volatile: true
wheel-budget: 10000000
backoff: quadratic,base=2s,max=1h
visibility-timeout: 45s
addr: 127.0.0.1:9999 # of client commands, in the same file
`, []string{"DDQ_LIMIT_PAYLOAD=2097152", "DDQ_UNRELATED=1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	a := cfg.Actors
	if cfg.Store != "redis://127.0.0.1:7777" || cfg.ShutdownGrace != 90*time.Second || !cfg.AllowVolatile ||
		a.WheelBudget != 10_000_000 || a.Topic.Visibility != 45*time.Second || a.Limits.Payload != 2<<20 {
		t.Errorf("got %+v", cfg)
	}
	want := store.Backoff{Kind: store.BackoffQuadratic, Base: 2 * time.Second, Max: time.Hour}
	if a.Topic.Backoff != want {
		t.Errorf("backoff = %+v, want %+v", a.Topic.Backoff, want)
	}
}

func TestNoRetriesAreNotTheDefault(t *testing.T) {
	for args, want := range map[string]int{"": 3, "--max-retries=7": 7, "--max-retries=0": -1} {
		cfg, err := resolved(t, "", nil, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Check(); err != nil || cfg.Actors.Topic.MaxRetries != want {
			t.Errorf("%q: %d retries, %v; want %d", args, cfg.Actors.Topic.MaxRetries, err, want)
		}
	}
}

func TestConfigFromEnvironmentVariable(t *testing.T) {
	cfg, err := resolved(t, "", []string{"DDQ_CONFIG=" + writeFile(t, "data: here\n")})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Data != "here" {
		t.Errorf("data = %q, want here", cfg.Data)
	}
}

func TestBadSettingsNameTheirOrigin(t *testing.T) {
	for _, tc := range []struct {
		name string
		file string
		env  []string
		want string
	}{
		{"unknown key", "grcp-addr: x\n", nil, `no setting is called "grcp-addr"`},
		{"snake case", "grpc_addr: x\n", nil, `did you mean "grpc-addr"?`},
		{"nested", "grpc-addr:\n  host: x\n", nil, "grpc-addr: "},
		{"duration without unit", "shutdown-grace: 30\n", nil, "shutdown-grace: "},
		{"duration without unit, environment", "", []string{"DDQ_HORIZON=30"}, "DDQ_HORIZON: "},
		{"typo in a variable", "", []string{"DDQ_GOSIP_KEY=x"}, "variable DDQ_GOSIP_KEY is no setting of ddq; did you mean DDQ_GOSSIP_KEY?"},
		{"swapped letters", "", []string{"DDQ_GRPC_ADRR=x"}, "did you mean DDQ_GRPC_ADDR?"},
		{"words run together", "", []string{"DDQ_NODENAME=x"}, "did you mean DDQ_NODE_NAME?"},
		{"short name", "", []string{"DDQ_JION=x"}, "did you mean DDQ_JOIN?"},
		{"typo in the file", "gosip-key: x\n", nil, `did you mean "gossip-key"?`},
		{"not YAML", "a: b: c\n", nil, "configuration file "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := resolved(t, tc.file, tc.env)
			var usage session.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want a usage error with %q", err, tc.want)
			}
		})
	}
}

// A command of `ddq work` has the task in its environment, and may be ddq itself.
func TestVariablesThatAreNoSettings(t *testing.T) {
	_, err := resolved(t, "", []string{
		"DDQ_TASK_ID=1", "DDQ_TOPIC=mail", "DDQ_ATTEMPT=1", "DDQ_EXECUTE_TIME=x", "DDQ_HOLD_TOKEN=00", "DDQ_ATTR_ADDR=x",
		"DDQ_PORT_9090_TCP=x", "DDQ_SERVICE_HOST=x", "DDQ_VERSION=v1", "DDQ_GOSIP_KEY=", "ddq_gosip_key=x",
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMissingConfigFile(t *testing.T) {
	_, err := resolved(t, "", []string{"DDQ_CONFIG=nowhere.yaml"})
	if err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("err = %v, want one that names the file", err)
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--store", "etcd://x"},
		{"--store", "redis://%zz"},
		{"--pprof-addr", "0.0.0.0:6060", "--insecure"},
		{"--http-addr", "0.0.0.0:8080"},
		{"--horizon", "61s"},
		{"--visibility-timeout", "-1s"},
		{"--visibility-timeout", "100ms"},
		{"--shutdown-grace", "-1s"},
		{"--max-retries", "-1"},
		{"--max-retries", "5000"},
		{"--shards", "70000"},
		{"--hold-ahead", "251ms"},
		{"--hold-ahead", "-1ms"},
		{"--load-every", "10ns"},
		{"--horizon", "5s", "--load-every", "30s"},
		{"--watchdog-interval", "10ns"},
		{"--lease-ttl", "10ns"},
		{"--limit-batch-bytes", "8388608"},
		{"--max-payload", "8388608"},
	} {
		cfg, err := resolved(t, "", nil, args...)
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Check(); !session.IsUsage(err) {
			t.Errorf("%v: err = %v, want a usage error", args, err)
		} else if flag := args[len(args)-2]; !strings.Contains(err.Error(), flag) && args[len(args)-1] != "--insecure" {
			t.Errorf("%v: %v does not name %s", args, err, flag)
		}
	}
}
