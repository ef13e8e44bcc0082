package node

import (
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestSecretsOfSettingsAreToldNobody: neither what a server logs, answers and counts has them, nor the
// errors of settings that are wrong.
func TestSecretsOfSettingsAreToldNobody(t *testing.T) {
	const password, key = "canary-of-redis", "canary-of-the-fleet-of-32-bytes!"
	_, token, _ := auth.NewToken()
	t.Setenv("DDQ_TEST_ROOT", token.Reveal())
	t.Setenv("DDQ_TEST_MASTER", masterOne)
	gossip := base64.StdEncoding.EncodeToString([]byte(key))
	secrets := map[string]string{"password": password, "gossip key": gossip, "bytes of it": key, "root token": token.Reveal(), "master key": masterOne, "bytes of that": strings.Repeat("1", 32)}
	told := func(where, text string) {
		t.Helper()
		for what, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the %s:\n%.500s", where, what, text)
			}
		}
	}
	redis := redistest.StartTCP(t, "--user", "ddq", "on", ">"+password, "~*", "&*", "+@all").Addr()
	args := []string{
		"--store", "redis://ddq:" + password + "@" + redis, "--gossip-addr", "127.0.0.1:0", "--advertise-addr", "127.0.0.1:1", "--gossip-key", gossip, "--auth", "token", "--root-token", "env:DDQ_TEST_ROOT",
		"--encryption-key", "env:DDQ_TEST_MASTER",
	}
	log := new(logged)
	n, err := Start(t.Context(), configOf(t, args...), slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/v1/server", "/v1/nodes", "/v1/overview", "/v1/tokens", "/v1/whoami", "/v1/nothing", "/readyz"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.HTTPAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token.Reveal())
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if path != "/v1/nothing" && path != "/v1/whoami" && answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, answer.Status, text)
		}
		told(path, string(text))
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
	if log.String() == "" {
		t.Error("nothing is logged")
	}
	told("the log", log.String())

	const no = "redis://ddq:" + password + "@127.0.0.1:1"
	for _, wrong := range [][]string{
		{"--store", no},
		{"--store", no + "/x"},
		{"--store", no + "?nonsense=1"},
		{"--store", "redis://ddq:" + password + "@127.0.0.1:port"},
		{"--store", "redis://ddq:" + password + "%zz@127.0.0.1:1"},
		{"--store", "redis-cluster://ddq:" + password + "@127.0.0.1:1,x:y"},
		{"--store", "redis-sentinel://ddq:" + password + "@127.0.0.1:1"},
		{"--store", "redi://ddq:" + password + "@127.0.0.1:1"},
		{"--store", "redis://ddq:wrong-" + password + "@" + redis},
		{"--gossip-addr", "127.0.0.1:0", "--gossip-key", gossip + "x"},
		{"--gossip-key", "x" + gossip},
		{"--auth", "token", "--root-token", token.Reveal()},
		{"--encryption-key", masterOne},
		{"--store", no, "--encryption-key", masterOne},
	} {
		n, err := Start(t.Context(), configOf(t, wrong...), slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if err == nil {
			n.Stop()
			t.Errorf("%q is taken", wrong[0])
			continue
		}
		told("the error of "+wrong[0], err.Error())
	}
	told("the log of those", log.String())
}
