package node

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/port"
)

// TestProfilesAreForThisMachineOnly: with --pprof-addr they are at that port, and not at the others. It
// asks nobody who they are, so that it is on loopback, and turns away pages of a browser there.
func TestProfilesAreForThisMachineOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:6060", "example.com:6060", "off", "6060"} {
		for _, also := range []string{"--plaintext", "--insecure"} {
			if cfg := configOf(t, "--pprof-addr", addr, also); cfg.Check() == nil {
				t.Errorf("%s with %s is taken", addr, also)
			}
		}
	}
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	profiles := claim.Addr()
	n, err := Start(t.Context(), configOf(t, "--pprof-addr", profiles, "--auth", "token", "--root-token", "file:"+filepath.Join(t.TempDir(), "root")), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	for _, tc := range []struct {
		what, addr, host, origin, method string
		want                             int
	}{
		{"this machine", profiles, profiles, "", http.MethodGet, http.StatusOK},
		{"this machine by its name", profiles, "localhost:6060", "", http.MethodGet, http.StatusOK},
		{"a page whose name leads here", profiles, "attacker.example:6060", "", http.MethodGet, http.StatusMisdirectedRequest},
		{"a page of another origin", profiles, profiles, "https://attacker.example", http.MethodPost, http.StatusForbidden},
		{"the port of everybody", n.HTTPAddr(), n.HTTPAddr(), "", http.MethodGet, http.StatusNotFound},
	} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+tc.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = tc.host
			if tc.origin != "" {
				request.Header.Set("Origin", tc.origin)
			}
			answer, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != tc.want || tc.want != http.StatusOK && strings.Contains(string(text), "goroutine") {
				t.Errorf("%s, %s: %s %.100s; want %d", tc.what, path, answer.Status, text, tc.want)
			}
		}
	}
}
