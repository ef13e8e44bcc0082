package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/coreos/go-systemd/v22/unit"
)

// serviceOptions are those of the unit's section Service; the last of a name counts.
func serviceOptions(t *testing.T) map[string]string {
	t.Helper()
	all, err := unit.DeserializeOptions(bytes.NewReader(open(t, "systemd/ddq.service")))
	if err != nil {
		t.Fatal(err)
	}
	options := map[string]string{}
	for _, o := range all {
		if o.Section == "Service" {
			options[o.Name] = o.Value
		}
	}
	return options
}

func TestUnit(t *testing.T) {
	o := serviceOptions(t)
	for name, want := range map[string]string{
		"ExecStart":       imageBinary + " server",
		"EnvironmentFile": "/etc/ddq/ddq.env",
		"DynamicUser":     "yes",
		"StateDirectory":  "ddq",
		"ProtectSystem":   "strict",
		"KillSignal":      "SIGTERM",
		"Type":            "notify",
		"Restart":         "on-failure",
		"WatchdogSec":     "30",
		"WatchdogSignal":  "SIGKILL", // the Go runtime exits with 2 on SIGABRT, which is not tried again
	} {
		if o[name] != want {
			t.Errorf("%s=%s, want %s", name, o[name], want)
		}
	}
	env, err := dotenv.Parse(bytes.NewReader(open(t, "systemd/ddq.env")))
	if err != nil {
		t.Fatal(err)
	}
	checkSettings(t, env)
	kill, err := time.ParseDuration(o["TimeoutStopSec"] + "s")
	if err != nil {
		t.Fatal(err)
	}
	checkGrace(t, "the service", env["DDQ_SHUTDOWN_GRACE"], kill)
}

// TestSystemdTakesTheUnit asks systemd itself, where it is installed.
func TestSystemdTakesTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	// The binary of the unit has to exist: let it be the one under test.
	text := bytes.ReplaceAll(open(t, "systemd/ddq.service"), []byte(imageBinary), []byte(ddq))
	file := filepath.Join(t.TempDir(), "ddq.service")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("ddq.service")) {
		t.Errorf("%v\n%s", err, out)
	}
}
