package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ddq is the binary under test: that of DDQ_TEST_BIN, or made by TestMain.
var ddq string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if ddq = os.Getenv("DDQ_TEST_BIN"); ddq != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "ddq-deploy-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ddq = filepath.Join(dir, "ddq")
	build := exec.Command("go", "build", "-o", ddq, "./cmd/ddq")
	build.Dir = "../.."
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1 // the compiler has said why
	}
	return m.Run()
}

// open reads a file of deploy/.
func open(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goList runs go list in the main module.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// cleanEnv is the environment without settings of ddq.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "DDQ_") })
}

// checkSettings has `ddq doctor` look at the settings among env: each must be
// known, and have a value that a server takes. The store is not opened.
func checkSettings(t *testing.T, env map[string]string) {
	t.Helper()
	// A fleet needs a Redis; that this one cannot be reached is another finding.
	cmd := exec.Command(ddq, "doctor", "--no-server", "--store", "redis://127.0.0.1:1", "-o", "json")
	cmd.Env = cleanEnv()
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, _ := cmd.CombinedOutput() // exits 1
	configured := false
	for line := range bytes.Lines(out) {
		var finding struct{ Check, Status, Detail string }
		if json.Unmarshal(line, &finding) != nil || finding.Check != "configuration" {
			continue
		}
		configured = configured || finding.Status == "ok"
		if finding.Status == "wrong" || isUnknown(finding.Detail) {
			t.Errorf("ddq doctor: %s", finding.Detail)
		}
	}
	if !configured {
		t.Errorf("ddq doctor: %s", out)
	}
}

// settingsAt are settings whose files are elsewhere: pairs of what they say and where that is.
func settingsAt(env map[string]string, pairs ...string) map[string]string {
	elsewhere := make(map[string]string, len(env))
	for name, value := range env {
		elsewhere[name] = strings.NewReplacer(pairs...).Replace(value)
	}
	return elsewhere
}

// runDDQ runs a command that needs no server.
func runDDQ(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(ddq, args...)
	cmd.Env = cleanEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ddq %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var unknownVariable = regexp.MustCompile(`environment variable (\S+) is no setting`)

func isUnknown(detail string) bool {
	m := unknownVariable.FindStringSubmatch(detail)
	return m != nil
}

func TestAMisspeltSettingIsFound(t *testing.T) {
	if !isUnknown("environment variable DDQ_GRPC_ADRR is no setting of ddq") {
		t.Error("the check sees nothing")
	}
	cmd := exec.Command(ddq, "doctor", "--no-server", "--store", "memory", "-o", "json")
	cmd.Env = append(cleanEnv(), "DDQ_GRPC_ADRR=x")
	if out, _ := cmd.Output(); !unknownVariable.Match(out) {
		t.Errorf("ddq doctor says something else by now: %s", out)
	}
}

// server is a running node on the memory store.
type server struct{ grpc, http string }

var serving = regexp.MustCompile(`msg=serving addr=(\S+) http=(\S+)`)

func startServer(t *testing.T) server {
	t.Helper()
	cmd := exec.Command(ddq, "server", "--store", "memory", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--watchdog-interval", "100ms")
	cmd.Env = cleanEnv()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		io.Copy(io.Discard, stderr)
		cmd.Wait()
	})
	var log strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, stderr) // ends with the process
			return server{grpc: m[1], http: m[2]}
		}
	}
	t.Fatalf("the server ended:\n%s", log.String())
	return server{}
}

// command runs a client command on the server.
func (s server) command(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(ddq, append(args, "--addr", s.grpc)...)
	cmd.Env = cleanEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ddq %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (s server) get(t *testing.T, path string) []byte {
	t.Helper()
	c := http.Client{Timeout: time.Minute}
	reply, err := c.Get("http://" + s.http + path)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", path, reply.Status, err, body)
	}
	return body
}
