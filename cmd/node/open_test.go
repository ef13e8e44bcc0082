package node

import (
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// TestStrangersSeeHealthOnly: of everything that the HTTP port has, whoever does not say who they are
// gets the two probes, and the form and the files of a login.
func TestStrangersSeeHealthOnly(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	n, err := Start(t.Context(), configOf(t, "--auth", "token", "--root-token", "file:"+root), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	text, err := os.ReadFile("../../api/openapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(text, &described); err != nil || len(described.Paths) < 50 {
		t.Fatalf("%d paths, %v", len(described.Paths), err)
	}
	param := regexp.MustCompile(`\{[^}]*\}`)
	ask := func(method, path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.HTTPAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(said)
	}
	shown := []string{"/healthz", "/readyz", "/v1/openapi.json", "/openapi.json"}
	for path, methods := range described.Paths {
		for method := range methods {
			if method = strings.ToUpper(method); !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) {
				continue
			}
			code, said := ask(method, param.ReplaceAllString(path, "x"))
			if code < 300 && !slices.Contains(shown, path) {
				t.Errorf("%s %s: %d %.100s", method, path, code, said)
			}
		}
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 401, "/ui/tasks": 401, "/ui/settings": 401, "/debug/pprof/": 404, "/debug/pprof/heap": 404, "/debug/pprof/cmdline": 404, "/debug/vars": 404,
		"/ui/debug/pprof/": 401, "/v1/debug/pprof/": 404, "/.git/config": 404, "/admin": 404, "/metrics/": 404, "//metrics": 404, "/healthz/../metrics": 404,
	} {
		if code, said := ask("GET", path); code != want {
			t.Errorf("%s: %d, want %d: %.100s", path, code, want, said)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if _, said := ask("GET", path); said != "ok\n" && said != "ready\n" {
			t.Errorf("%s says %q", path, said)
		}
	}
}

// TestFilesAreForTheirOwnerOnly: everything that a server makes, with every setting that makes something,
// also in a data directory that somebody else made and left open.
func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	n, err := Start(t.Context(), configOf(t, "--store", Embedded, "--data", "data", "--auth", "token", "--audit-log", "audit", "--encryption-key", keyFile(t, masterOne)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile("data.root-token")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(n.GRPCAddr(), client.Config{Token: strings.TrimSpace(string(token))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTopic(t.Context(), "mail", client.Policy{}); err != nil {
		t.Error(err)
	}
	if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail", Delay: time.Hour}); err != nil {
		t.Error(err)
	}
	c.Close()
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
	made := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir || path == temp {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		made++
		if strings.HasPrefix(path, temp) {
			t.Errorf("%s stays in the folder of everybody", path)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 && path != data {
			t.Errorf("%s has the mode %v", path, mode)
		}
		return nil
	})
	if err != nil || made < 5 {
		t.Errorf("%d files, %v", made, err)
	}
}
