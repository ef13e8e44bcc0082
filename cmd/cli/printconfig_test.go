package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSettingsArePrintedWithWhereTheyComeFrom: what is printed is what a server would have.
func TestSettingsArePrintedWithWhereTheyComeFrom(t *testing.T) {
	file := writeFile(t, "store: redis://ddq:secret@127.0.0.1:7777/3\nhorizon: 1m\nhttp-serve: [api, metrics]\n")
	environ := []string{"DDQ_HORIZON=20s", "DDQ_ROOT_TOKEN=env:ROOT"}
	got := ddqWith(t.Context(), "", environ, "server", "--print-config", "--config", file, "--shards", "7", "--max-retries", "0", "-o", "json")
	if got.code != exitOK || strings.Contains(got.out, "secret") {
		t.Fatalf("got %+v", got)
	}
	said := map[string]settingView{}
	for line := range strings.Lines(got.out) {
		var s settingView
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		said[s.Setting] = s
	}
	for _, want := range []settingView{
		{"store", "redis://ddq:xxxxx@127.0.0.1:7777/3", "", file + ": store"},
		{"http-serve", "api,metrics", "", file + ": http-serve"},
		{"horizon", "20s", "", "DDQ_HORIZON"},
		{"root-token", "env:ROOT", "", "DDQ_ROOT_TOKEN"},
		{"shards", "7", "", "--shards"},
		{"load-every", "0", "a quarter of the horizon", "default"},
		{"grpc-addr", "127.0.0.1:9090", "", "default"},
	} {
		if said[want.Setting] != want {
			t.Errorf("got %+v, want %+v", said[want.Setting], want)
		}
	}
	if _, ok := said["addr"]; ok {
		t.Error("settings of clients are none of a server")
	}
	table := ddq(t, "server", "--print-config", "--config", file)
	if !strings.Contains(table.out, "load-every            a quarter of the horizon") {
		t.Errorf("as a table:\n%s", table.out)
	}
	if got := ddq(t, "server", "--print-config", "--shards", "-1"); got.code != exitUsage || got.out != "" {
		t.Errorf("of what cannot work: %+v", got)
	}
}
