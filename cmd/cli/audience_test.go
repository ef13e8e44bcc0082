//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/cli/schedules"
)

func TestAudienceFromCreateToDelete(t *testing.T) {
	ddq := onMemory(t)
	create := []string{"audience", "create", "users", "--kind", "digest", "--kind-off", "sms", "--shards", "4", "--fallback-zone", "Europe/Berlin"}
	for range 2 {
		if got := ddq(exitOK, create...); got.out != "audience users: 4 shards, recipients without a zone are in Europe/Berlin\n" {
			t.Errorf("create: %s", got.out)
		}
	}
	if got := ddq(exitFailed, "audience", "create", "users"); !strings.Contains(got.err, "AUDIENCE_EXISTS") {
		t.Errorf("create with other settings: %s", got.err)
	}
	put := []string{"audience", "put", "users", "ada", "--zone", "Europe/London", "--quiet", "22:00-07:00", "--off", "digest", "--data", "x"}
	for _, want := range []string{"added", "same"} {
		if got := ddq(exitOK, put...); got.out != "recipient ada of users: "+want+"\n" {
			t.Errorf("put: %s", got.out)
		}
	}
	if got := ddq(exitFailed, "audience", "put", "users", "bob", "--zone", "Europe/Lodon"); !strings.Contains(got.err, "BAD_RECIPIENT") || !strings.Contains(got.err, "Europe/London") {
		t.Errorf("a zone that is none: %s", got.err)
	}
	want := `{"id":"ada","zone":"Europe/London","quiet_from":"22:00","quiet_to":"07:00","off":["digest"],"data":"x"}` + "\n"
	if got := ddq(exitOK, "audience", "get", "users", "ada", "-o", "json"); got.out != want {
		t.Errorf("get: %s, want %s", got.out, want)
	}
	if got := ddq(exitOK, "audience", "recipients", "users", "-o", "json"); got.out != want {
		t.Errorf("recipients: %s, want %s", got.out, want)
	}
	if got := ddq(exitOK, "audience", "describe", "users"); !strings.Contains(got.out, "digest, sms (off)") || !strings.Contains(got.out, "in Europe/London  1") {
		t.Errorf("describe:\n%s", got.out)
	}
	if got := ddq(exitOK, "audience", "list"); !strings.Contains(got.out, "users") {
		t.Errorf("list:\n%s", got.out)
	}
	schedule := []string{"schedule", "put", "weekly", "--topic", "mail", "--cron", "0 9 * * MON", "--audience", "users", "--kind", "digest", "--spread", "30m", "--grain", "10s"}
	ddq(exitOK, schedule...)
	if got := ddq(exitOK, append(schedule, "-o", "json")...); !strings.Contains(got.out, `"unchanged"`) {
		t.Errorf("the same schedule again: %s", got.out)
	}
	if got := ddq(exitOK, "schedule", "describe", "weekly"); !strings.Contains(got.out, "users, kind digest, over 30m by 10s") {
		t.Errorf("the schedule:\n%s", got.out)
	}
	if got := ddq(exitFailed, "schedule", "put", "x", "--topic", "mail", "--every", "1h", "--audience", "nobody"); !strings.Contains(got.err, "NO_AUDIENCE") {
		t.Errorf("without an audience: %s", got.err)
	}
	ddq(exitUsage, "schedule", "put", "x", "--topic", "mail", "--every", "1h", "--kind", "digest")
	if got := ddq(exitOK, "schedule", "preview", "weekly"); !strings.Contains(got.out, "1 opted out") {
		t.Errorf("preview of the schedule:\n%s", got.out)
	}
	if got := ddq(exitOK, "audience", "preview", "users", "--spread", "1h", "--quiet", "ignore"); !strings.Contains(got.out, "ada") || !strings.Contains(got.out, "Europe/London 1") {
		t.Errorf("preview:\n%s", got.out)
	}
	if got := ddq(exitOK, "audience", "preview", "users", "--kind", "digest", "-o", "json"); !strings.Contains(got.out, `"verdict":"opted_out"`) {
		t.Errorf("preview in JSON: %s", got.out)
	}
	ddq(exitOK, "schedule", "trigger", "weekly")
	if got := ddq(exitOK, "audience", "runs", "users"); !strings.Contains(got.out, "mail/weekly") && !strings.Contains(got.err, "No runs.") {
		t.Errorf("runs:\n%s", got.out)
	}
	if got := ddq(exitFailed, "audience", "cancel-run", "users", "nobody", "--yes"); !strings.Contains(got.err, "NO_RUN") {
		t.Errorf("cancel of a run that is none: %s", got.err)
	}
	if got := ddq(exitOK, "audience", "remove", "users", "ada"); got.out != "recipient ada of users: removed\n" {
		t.Errorf("remove: %s", got.out)
	}
	if got := ddq(exitFailed, "audience", "delete", "users", "--yes"); !strings.Contains(got.err, "has schedule mail/weekly (AUDIENCE_IN_USE)") {
		t.Errorf("delete of one that a schedule has: %s", got.err)
	}
	ddq(exitOK, "schedule", "delete", "weekly")
	ddq(exitOK, "audience", "delete", "users", "--yes")
	if got := ddq(exitFailed, "audience", "describe", "users"); !strings.Contains(got.err, "NO_AUDIENCE") {
		t.Errorf("describe of one that is deleted: %s", got.err)
	}
}

// TestRecipientRefusals has the rows of the table of bad input about one of an audience.
func TestRecipientRefusals(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitOK, "audience", "create", "users", "--kind", "digest")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"users", strings.Repeat("a", 129)}, "BAD_RECIPIENT"},
		{[]string{"users", "bob", "--quiet", "25:00-07:00"}, "BAD_RECIPIENT"},
		{[]string{"users", "bob", "--off", "news"}, "NO_KIND"},
		{[]string{"users", "bob", "--off", "digest", "--on", "digest"}, "BAD_RECIPIENT"},
		{[]string{"users", "bob", "--data", strings.Repeat("d", 257)}, "BAD_RECIPIENT"},
		{[]string{"nobody", "bob"}, "NO_AUDIENCE"},
	} {
		got := ddq(exitFailed, append([]string{"audience", "put"}, c.args...)...)
		if !strings.Contains(got.err, c.want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%.80q says %q, want %s", c.args, got.err, c.want)
		}
	}
	if got := ddq(exitOK, "audience", "recipients", "users"); got.out != "" {
		t.Errorf("recipients that were refused are there:\n%s", got.out)
	}
}

func TestAudienceImport(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitOK, "audience", "create", "users", "--kind", "digest")
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	imported := func(args ...string) (r schedules.ImportResult) {
		t.Helper()
		got := ddq(exitOK, append([]string{"audience", "import", "users", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(got.out), &r); err != nil {
			t.Fatalf("%s: %v", got.out, err)
		}
		return r
	}
	path := file("users.csv", "id,zone,off,disabled\nada,Europe/London,digest,\nbob,Nowhere,,\n\"x\"y,,,\neve,,,perhaps\ndan,,,true\nada,Europe/Paris,,\n")
	r := imported(path)
	if r.Added != 2 || r.Bad != 3 || r.BadFile != path+".bad" {
		t.Errorf("imported %+v", r)
	}
	bad, err := os.ReadFile(path + ".bad")
	if err != nil || strings.Count(string(bad), "\n") != 3 || !strings.Contains(string(bad), "line 3: ") || !strings.Contains(string(bad), "Nowhere") {
		t.Errorf("bad lines are\n%s, %v", bad, err)
	}
	if got := ddq(exitOK, "audience", "get", "users", "ada", "-o", "json"); !strings.Contains(got.out, "Europe/Paris") {
		t.Errorf("the later line counts, and it is %s", got.out)
	}
	if r := imported(path); r.Same != 2 || r.Added+r.Changed != 0 {
		t.Errorf("the same again: %+v", r)
	}
	if r := imported(file("users.ndjson", `{"id":"ada","zone":"Europe/Paris"}`+"\n\n"+`{"id":"new","data":"x"}`), "--replace"); r.Added != 1 || r.Same != 1 || r.Removed != 1 {
		t.Errorf("replaced by %+v", r)
	}
	if got := ddq(exitFailed, "audience", "import", "users", file("strict.csv", "id,zone\na,Nowhere\n"), "--replace", "--strict"); !strings.Contains(got.err, "line 2: ") {
		t.Errorf("strict: %s", got.err)
	}
	if got := ddq(exitOK, "audience", "describe", "users", "-o", "json"); !strings.Contains(got.out, `"recipients":2`) {
		t.Errorf("an import that stopped has removed some: %s", got.out)
	}
	for text, want := range map[string]string{
		"id,colour\na,b\n": "colour", "id,id\na,b\n": "twice", "zone\nUTC\n": "no column id", "": "names of the columns",
	} {
		if got := ddq(exitFailed, "audience", "import", "users", file("x.csv", text)); !strings.Contains(got.err, want) {
			t.Errorf("%q: %s, want %s", text, got.err, want)
		}
	}
}
