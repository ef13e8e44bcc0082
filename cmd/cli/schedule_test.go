//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/node"
)

// onMemory runs command lines against a server whose store keeps schedules.
func onMemory(t *testing.T) func(code int, args ...string) outcome {
	return on(t, startTestNode(t, func(c *node.Config) { c.Store, c.Data = "memory", "" }))
}

func TestScheduleFromPutToDelete(t *testing.T) {
	ddq := onMemory(t)
	put := []string{"schedule", "put", "nightly", "--topic", "report", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--payload", "go", "--label", "team=data"}
	if got := ddq(exitOK, put...); !strings.HasPrefix(got.out, "schedule nightly of topic report created: version 1, next 2") {
		t.Errorf("put: %s", got.out)
	}
	if got := ddq(exitOK, append(put, "-o", "json")...); !strings.HasPrefix(got.out, `{"topic":"report","name":"nightly","outcome":"unchanged","version":1,"next_time":"`) {
		t.Errorf("the same again: %s", got.out)
	}
	if got := ddq(exitOK, append(put, "--if-version", "1", "--overlap", "allow")...); !strings.Contains(got.out, "changed: version 2") {
		t.Errorf("another overlap: %s", got.out)
	}
	if got := ddq(exitOK, "schedule", "preview", "nightly", "--from", "2027-03-27T00:00:00Z", "--count", "3"); !strings.Contains(got.out, "Sun 2027-03-28T03:00:00+02:00  2027-03-28T01:00:00.000Z") {
		t.Errorf("the night in which the clocks change:\n%s", got.out)
	}
	if got := ddq(exitOK, "schedule", "list", "--label", "team=data"); !strings.Contains(got.out, "30 2 * * * Europe/Berlin  active") {
		t.Errorf("list:\n%s", got.out)
	}
	if got := ddq(exitOK, "schedule", "list", "--state", "paused"); got.out != "" || got.err != "No schedules.\n" {
		t.Errorf("list of the paused: %q, %q", got.out, got.err)
	}
	if got := ddq(exitOK, "schedule", "list", "--skipped-since", "24h"); got.out != "" || got.err != "No schedules.\n" {
		t.Errorf("list of those that have skipped: %q, %q", got.out, got.err)
	}
	if got := ddq(exitOK, "schedule", "pause", "nightly", "--by", "ada", "--note", "repairs"); got.out != "schedule nightly of topic report is paused\n" {
		t.Errorf("pause: %s", got.out)
	}
	if got := ddq(exitOK, "schedule", "describe", "nightly"); !strings.Contains(got.out, "paused by ada: repairs") || !strings.Contains(got.out, "label team  data") {
		t.Errorf("describe:\n%s", got.out)
	}
	if got := ddq(exitOK, "schedule", "resume", "nightly"); !strings.HasPrefix(got.out, "schedule nightly of topic report is resumed, next 2") {
		t.Errorf("resume: %s", got.out)
	}
	made := ddq(exitOK, "schedule", "trigger", "nightly", "--request-id", "r", "-o", "json")
	if again := ddq(exitOK, "schedule", "trigger", "nightly", "--request-id", "r", "-o", "json"); strings.TrimSuffix(again.out, "}\n") != strings.TrimSuffix(made.out, "}\n")+`,"repeated":true` {
		t.Errorf("trigger: %s, again: %s", made.out, again.out)
	}
	if got := ddq(exitOK, "work", "--topic", "report", "--count", "1", "--exec", "cat"); got.out != "go\n" {
		t.Errorf("the run: %q", got.out)
	}
	if got := ddq(exitFailed, "topic", "delete", "report", "--yes"); !strings.Contains(got.err, "the topic has schedules; --force deletes them too (TOPIC_NOT_EMPTY)") {
		t.Errorf("delete of its topic: %s", got.err)
	}
	if got := ddq(exitOK, "schedule", "delete", "nightly"); got.out != "schedule nightly of topic report deleted\n" {
		t.Errorf("delete: %s", got.out)
	}
	if got := ddq(exitFailed, "schedule", "describe", "nightly"); !strings.Contains(got.err, `no schedule "nightly" (NO_SCHEDULE)`) {
		t.Errorf("describe of what is gone: %s", got.err)
	}
}

func TestScheduleRunsAndIsDescribed(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitOK, "schedule", "put", "tick", "--topic", "report", "--every", "1s", "--payload", "x")
	got := ddq(exitOK, "work", "--topic", "report", "--count", "2", "-o", "json")
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
		var v workView
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.LateMs < 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
	await(t, "two runs that are done", func() bool {
		got = ddq(exitOK, "schedule", "describe", "tick", "-o", "json")
		return strings.Contains(got.out, `"done":2`)
	})
	if !strings.Contains(got.out, `"origin":"timetable","outcome":"done"`) {
		t.Errorf("describe: %s", got.out)
	}
}

func TestCalendarOfASchedule(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitUsage, "calendar", "put", "holidays")
	ddq(exitUsage, "calendar", "put", "holidays", "--span", "noon")
	if got := ddq(exitFailed, "calendar", "put", "holidays", "--day", "soon"); !strings.Contains(got.err, "BAD_CALENDAR") {
		t.Errorf("put: %s", got.err)
	}
	if got := ddq(exitOK, "calendar", "put", "holidays", "--yearly", "12-25,01-01", "--weekday", "sun", "--span", "2030-12-24T12:00/2030-12-25T00:00"); got.out != "calendar holidays created: version 1\n" {
		t.Errorf("put: %s", got.out)
	}
	ddq(exitOK, "schedule", "put", "open", "--topic", "shop", "--cron", "0 9,18 * * *", "--calendar", "holidays")
	got := ddq(exitOK, "schedule", "preview", "open", "--from", "2030-12-24T00:00:00Z", "--count", "6")
	if strings.Count(got.out, "excluded") != 3 || !strings.Contains(got.out, "Tue 2030-12-24T18:00:00+00:00  2030-12-24T18:00:00.000Z       excluded") {
		t.Errorf("preview:\n%s", got.out)
	}
	if got := ddq(exitFailed, "calendar", "delete", "holidays"); !strings.Contains(got.err, `schedule "open" of topic "shop" names calendar "holidays" (CALENDAR_IN_USE)`) {
		t.Errorf("delete: %s", got.err)
	}
	if got := ddq(exitFailed, "schedule", "put", "open", "--topic", "shop", "--every", "1m", "--calendar", "absent"); !strings.Contains(got.err, "(NO_CALENDAR)") {
		t.Errorf("unknown calendar: %s", got.err)
	}
	if got := ddq(exitOK, "calendar", "describe", "holidays"); !strings.Contains(got.out, "span     2030-12-24T12:00:00 to 2030-12-25T00:00:00") {
		t.Errorf("describe:\n%s", got.out)
	}
	if got := ddq(exitOK, "calendar", "list", "-o", "json"); got.out != `{"name":"holidays","yearly":["12-25","01-01"],"weekdays":["SUN"],"spans":[{"from":"2030-12-24T12:00:00","to":"2030-12-25T00:00:00"}],"version":1}`+"\n" {
		t.Errorf("list: %s", got.out)
	}
	ddq(exitOK, "schedule", "delete", "open")
	ddq(exitOK, "calendar", "delete", "holidays")
}

func TestBackfillOfASchedule(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitOK, "schedule", "put", "hourly", "--topic", "report", "--cron", "0 * * * *", "--payload", "x")
	if got := ddq(exitOK, "schedule", "backfill", "hourly", "--from", "5h", "--to", "1m", "--id", "b"); !strings.Contains(got.out, "backfill b of ") {
		t.Errorf("backfill: %s", got.out)
	}
	if got := ddq(exitOK, "schedule", "describe", "hourly"); !strings.Contains(got.out, "1 of ") {
		t.Errorf("describe:\n%s", got.out)
	}
	if got := ddq(exitOK, "schedule", "backfill", "hourly", "--cancel", "b"); !strings.Contains(got.out, "cancelled") {
		t.Errorf("cancel: %s", got.out)
	}
}

// TestScheduleRefusals has the rows of the table of bad input that a command line can have.
func TestScheduleRefusals(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitOK, "schedule", "put", "nightly", "--topic", "report", "--cron", "30 2 * * *")
	ddq(exitOK, "schedule", "put", "fast", "--topic", "report", "--cron", "* * * * * *", "--paused")
	ddq(exitOK, "schedule", "trigger", "nightly")
	ddq(exitOK, "audience", "create", "users", "--kind", "digest")
	ddq(exitOK, "schedule", "put", "busy", "--topic", "report", "--cron", "* * * * * *", "--paused")
	for i := range 10 {
		ddq(exitOK, "schedule", "backfill", "busy", "--from", "1m", "--to", "0s", "--id", strconv.Itoa(i))
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(args ...string) []string {
		return append([]string{"schedule", "put", "other", "--topic", "report"}, args...)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"schedule", "put", "a b", "--topic", "report", "--every", "1m"}, "name must be visible ASCII without spaces (BAD_NAME)"},
		{[]string{"schedule", "put", "other", "--topic", "~a", "--every", "1m"}, "BAD_NAME"},
		{put("--cron", "61 * * * *"), "--cron: minute (column 1): "},
		{put("--every", "500ms"), "--every must be at least 1s (BAD_CRON)"},
		{put(slices.Repeat([]string{"--cron", "0 3 * * *"}, 21)...), "(BAD_CRON)"},
		{put("--cron", "0 0 30 2 *"), "(NEVER_FIRES)"},
		{put("--at", "2001-01-31T09:00:00Z"), "(NEVER_FIRES)"},
		{put("--every", "1m", "--end", "2001-01-31T09:00:00Z"), "(NEVER_FIRES)"},
		{put("--cron", "0 3 * * *", "--zone", "Berlin"), `--zone: "Berlin" is none of the IANA database; did you mean Europe/Berlin? (BAD_ZONE)`},
		{put("--cron", "0 3 * * *", "--zone", "Local"), "(BAD_ZONE)"},
		{put("--cron", "0 3 * * *", "--zone", "+02:00"), "(BAD_ZONE)"},
		{put("--every", "10s", "--payload-file", large), "--payload: the payload of a schedule has 614400 bytes"},
		{put("--every", "10s", "--audience", "users", "--kind", "news"), "(NO_KIND)"},
		{put("--every", "10s", "--audience", "users", "--kind", "digest", "--spread", "25h"), "--spread must be 0s to 1d (OUT_OF_RANGE_FIELD)"},
		{put("--every", "10s", "--audience", "users", "--kind", "digest", "--spread", "10s", "--grain", "1m"), "--grain must be 0s to 10s (OUT_OF_RANGE_FIELD)"},
		{put("--every", "10s", "--jitter", "8s"), "--jitter: 8s is more than half of the 10s between two occurrences (OUT_OF_RANGE_FIELD)"},
		{put("--every", "10s", "--history", "101"), "--history must be 0 to 100 (OUT_OF_RANGE_FIELD)"},
		{put("--every", "10s", "--grace", "2d"), "--grace must be 1s to 1d (OUT_OF_RANGE_FIELD)"},
		{put("--every", "10s", "--untracked"), "--untracked is false with overlap ALLOW only"},
		{put("--every", "10s", "--from", "end", "--cron", "0 3 * * *"), "(BAD_POLICY)"},
		{put("--every", "10s", "--priority", "99"), "--priority must be 0 to 9 (OUT_OF_RANGE_FIELD)"},
		{put("--every", "10s", "--label", "a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9"), "--label: 9 labels; at most 8 are allowed (BAD_SCHEDULE)"},
		{[]string{"schedule", "put", "nightly", "--topic", "report", "--cron", "30 2 * * *", "--if-version", "7"}, "is at version 1 (VERSION_MISMATCH)"},
		{[]string{"schedule", "put", "nightly", "--topic", "report", "--cron", "30 2 * * *", "--if-version", "0"}, "(SCHEDULE_EXISTS)"},
		{[]string{"schedule", "backfill", "busy", "--from", "1m", "--to", "0s", "--id", "10"}, "(TOO_MANY_BACKFILLS)"},
		{[]string{"schedule", "pause", "absent"}, "(NO_SCHEDULE)"},
		{[]string{"schedule", "trigger", "nightly", "--overlap", "skip"}, "(RUN_OPEN)"},
		{[]string{"schedule", "backfill", "nightly", "--from", "1h", "--to", "2h"}, "--to is before from (BAD_TIME)"},
		{[]string{"schedule", "backfill", "fast", "--from", "4h", "--to", "0s"}, "(BACKFILL_TOO_LARGE)"},
		{[]string{"schedule", "backfill", "fast", "--from", "4h", "--to", "0s", "--overlap", "skip"}, "(BAD_POLICY)"},
		{[]string{"schedule", "preview", "nightly", "--count", "1001"}, "--count must be 1 to 1000 (OUT_OF_RANGE_FIELD)"},
	} {
		got := ddq(exitFailed, c.args...)
		if !strings.Contains(got.err, c.want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s\n  says %q\n  want %q", strings.Join(c.args, " "), got.err, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{put(), "say when: --cron, --every or --at"},
		{[]string{"schedule", "put", "other", "--every", "1m"}, "--topic is required"},
		{put("--every", "1m", "--overlap", "sometimes"), "--overlap is skip, buffer-one, "},
		{put("--every", "1m", "--catch-up", "some"), "--catch-up is last, all or none"},
		{put("--cron", "0 3 * * *", "--from", "end"), "--from goes with --every"},
		{put("--at", "tomorrow"), "--at: want RFC 3339"},
		{put("--every", "1m", "--payload", "a", "--payload-file", "b"), "exclude each other"},
		{[]string{"schedule", "list", "--state", "odd"}, "--state is active, paused or finished"},
		{[]string{"schedule", "list", "--skipped-since", "yesterday"}, "want RFC 3339"},
		{[]string{"schedule", "backfill", "nightly"}, "--from and --to are required"},
		{[]string{"schedule", "apply"}, "-f is required"},
		{[]string{"schedule", "apply", "-f", "x", "--prune"}, "--prune needs --label"},
	} {
		if got := ddq(exitUsage, c.args...); !strings.Contains(got.err, c.want) {
			t.Errorf("%s\n  says %q\n  want %q", strings.Join(c.args, " "), got.err, c.want)
		}
	}
}

// TestFinishedScheduleIsNotTriggered has the row that has to wait for its schedule to end.
func TestFinishedScheduleIsNotTriggered(t *testing.T) {
	ddq := onMemory(t)
	ddq(exitOK, "schedule", "put", "once", "--topic", "report", "--every", "1s", "--max-runs", "1", "--overlap", "allow", "--untracked")
	await(t, "a schedule of one run to finish", func() bool {
		return strings.Contains(ddq(exitOK, "schedule", "list", "--state", "finished").out, "once")
	})
	for _, args := range [][]string{{"trigger", "once"}, {"backfill", "once", "--from", "1m", "--to", "0s"}} {
		if got := ddq(exitFailed, append([]string{"schedule"}, args...)...); !strings.Contains(got.err, "(SCHEDULE_FINISHED)") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %q", args[0], got.err)
		}
	}
}

// TestFullTopicsAndAudiences has the rows that need other limits than those of a server as it comes.
func TestFullTopicsAndAudiences(t *testing.T) {
	ddq := on(t, startTestNode(t, func(c *node.Config) {
		c.Store, c.Data, c.Actors.Topic.Shards = "memory", "", 1
		c.Actors.Limits.Parcels, c.Actors.Limits.Recipients = 1, 1
	}))
	refused := func(want string, args ...string) {
		t.Helper()
		if got := ddq(exitFailed, args...); !strings.Contains(got.err, want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s\n  says %q\n  want %q", strings.Join(args, " "), got.err, want)
		}
	}
	ddq(exitOK, "topic", "create", "report", "--max-schedules", "1")
	ddq(exitOK, "schedule", "put", "nightly", "--topic", "report", "--every", "1d")
	refused("(TOO_MANY_SCHEDULES)", "schedule", "put", "another", "--topic", "report", "--every", "1d")

	ddq(exitOK, "topic", "create", "audit")
	ddq(exitOK, "topic", "pause", "audit", "--enqueue")
	ddq(exitOK, "enqueue", "--topic", "orders")
	ddq(exitOK, "work", "--topic", "orders", "--count", "1", "--exec", `echo '{"topic":"audit"}' >&3`)
	refused(`topic "orders" has 1 parcels on their way to other shards (OUTBOX_FULL)`, "schedule", "put", "nightly", "--topic", "orders", "--every", "1d")
	refused("the topic has tasks on their way to other topics; --force deletes them too (TOPIC_NOT_EMPTY)", "topic", "delete", "orders", "--yes")

	ddq(exitOK, "audience", "create", "users", "--shards", "1")
	ddq(exitOK, "audience", "put", "users", "ada")
	refused("(AUDIENCE_FULL)", "audience", "put", "users", "bob")
}

func TestApplyFileOfSchedules(t *testing.T) {
	ddq := onMemory(t)
	file := filepath.Join(t.TempDir(), "schedules.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first = `
schedules:
  - topic: report
    name: nightly
    cron: "30 2 * * *"
    zone: Europe/Berlin
    payload: go
    labels: {team: data}
  - {topic: cache, name: refresh, every: 10m, from: end, overlap: buffer-one, labels: {team: data}, max_retries: 2, backoff: "fixed,base=5s"}
  - {topic: mail, name: launch, at: ["2030-01-31T09:00:00Z"], slack: 5m}
`
	write(first)
	if got := ddq(exitOK, "schedule", "apply", "-f", file, "--dry-run"); got.out != "3 schedules differ, 0 do not. Nothing was changed.\n" || !strings.Contains(got.err, "create nightly of topic report") {
		t.Errorf("dry run: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "schedule", "apply", "-f", file); got.out != "3 schedules changed, 0 were as the file says.\n" {
		t.Errorf("apply: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "schedule", "apply", "-f", file); got.out != "Nothing differs: 3 schedules are as the file says.\n" || got.err != "" {
		t.Errorf("the same again: %s%s", got.err, got.out)
	}
	write(strings.Replace(strings.Replace(first, "30 2", "45 2", 1), "  - {topic: cache", "  - {topic: cache2", 1))
	got := ddq(exitUsage, "schedule", "apply", "-f", file, "--prune", "--label", "team=data")
	for _, want := range []string{`  - cron: ["30 2 * * *"]`, `  + cron: ["45 2 * * *"]`, "delete refresh of topic cache\n", "add --yes to do it"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("the diff lacks %q:\n%s", want, got.err)
		}
	}
	if got := ddq(exitOK, "schedule", "apply", "-f", file, "--prune", "--label", "team=data", "--yes", "-o", "json"); !strings.Contains(got.out, `{"action":"delete","topic":"cache","name":"refresh"`) || strings.Count(got.out, `"applied":true`) != 3 {
		t.Errorf("prune: %s", got.out)
	}
	ddq(exitFailed, "schedule", "describe", "--topic", "cache", "refresh")
	for text, want := range map[string]string{
		"schedules:\n  - {topic: a, name: b, evry: 1m}":    `unknown field "evry"`,
		"schedules:\n  - {topic: a, name: b, every: soon}": "every: want a duration",
		"schedules:\n  - {name: b, every: 1m}":             "topic is required",
		"schedules:\n  - {topic: a, name: b, at: [later]}": "want RFC 3339",
		"schedule: []": "want one list called schedules, and found schedule",
		"schedules:\n  - {topic: a, name: b, every: 1m, overlap: x}": "--overlap is skip",
	} {
		write(text)
		if got := ddq(exitUsage, "schedule", "apply", "-f", file); !strings.Contains(got.err, want) {
			t.Errorf("%s\n  says %q\n  want %q", text, got.err, want)
		}
	}
	write("schedules:\n  - {topic: good, name: a, every: 1m}\n  - {topic: good, name: b, cron: 61 * * * *}")
	if got := ddq(exitFailed, "schedule", "apply", "-f", file); !strings.Contains(got.err, "BAD_CRON") {
		t.Errorf("a bad one: %s", got.err)
	}
	ddq(exitFailed, "schedule", "describe", "a")
}

// TestScheduleOfAWorkflow puts one by a file and by flags, and sees it start.
func TestScheduleOfAWorkflow(t *testing.T) {
	ddq := onMemory(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const steps = `name: closing
undo: true
steps:
  - name: count
    task: {payload: orders, attributes: {kind: daily}, visibility_timeout: 90s}
    undo: {payload: recount}
  - name: ready
    wait: {signal: ready, timeout: 1h}
  - name: mail
    after: [count, {step: ready, on: ended}]
    task:
      max_retries: 3
      expire_after: 60s
`
	flow := write("flow.yaml", steps)
	file := write("schedules.yaml", "schedules:\n  - topic: shop\n    name: closing\n    cron: 0 2 * * *\n    workflow:\n      "+strings.ReplaceAll(strings.TrimSpace(steps), "\n", "\n      ")+"\n")
	if got := ddq(exitOK, "schedule", "apply", "-f", file); got.out != "1 schedules changed, 0 were as the file says.\n" {
		t.Errorf("apply: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "schedule", "apply", "-f", file); got.out != "Nothing differs: 1 schedules are as the file says.\n" {
		t.Errorf("the same again: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "schedule", "put", "closing", "--topic", "shop", "--cron", "0 2 * * *", "--workflow-file", flow); !strings.Contains(got.out, "unchanged: version 1") {
		t.Errorf("the same by flags: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "schedule", "describe", "closing"); !strings.Contains(got.out, "count, ready, mail") {
		t.Errorf("describe: %s", got.out)
	}
	if got := ddq(exitOK, "schedule", "trigger", "closing"); !strings.Contains(got.out, "triggered, workflow closing/") {
		t.Errorf("trigger: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "workflow", "list", "--topic", "shop"); !strings.Contains(got.out, "closing/") || !strings.Contains(got.out, "running") {
		t.Errorf("workflows: %s%s", got.err, got.out)
	}
	if got := ddq(exitOK, "schedule", "delete", "closing", "--cancel-runs"); !strings.Contains(got.out, "deleted") {
		t.Errorf("delete: %s%s", got.err, got.out)
	}
	for was, want := range map[string]string{
		"expire_after: 60s": `line 18: unknown field "expire_afters"`,
		"timeout: 1h":       `line 13: field "timeout": want a length of time`,
		"undo: true":        "the id of the workflow is made",
	} {
		is := map[string]string{"expire_after: 60s": "expire_afters: 60s", "timeout: 1h": "timeout: soon", "undo: true": "id: a"}[was]
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bad := write("bad.yaml", strings.Replace(string(text), was, is, 1))
		if got := ddq(exitUsage, "schedule", "apply", "-f", bad); !strings.Contains(got.err, want) {
			t.Errorf("%s\n  says %q\n  want %q", is, got.err, want)
		}
	}
}

func TestForecastDryRunAndWarnings(t *testing.T) {
	ddq := on(t, startTestNode(t, func(c *node.Config) { c.Store, c.Data, c.Actors.Limits.WarnDue = "memory", "", 1 }))
	if got := ddq(exitOK, "forecast"); got.out != "" || !strings.Contains(got.err, "Nothing is due.") {
		t.Errorf("nothing: %q, %q", got.out, got.err)
	}
	put := func(name string, more ...string) outcome {
		return ddq(exitOK, append([]string{"schedule", "put", name, "--topic", "report", "--at", "2035-01-31T09:00:00Z", "--payload", "x"}, more...)...)
	}
	if got := put("a"); got.err != "" {
		t.Errorf("the first: %s", got.err)
	}
	want := "warning: 2 tasks are due within 1s from 2035-01-31T09:00:00.000Z, more than 1; the emptiest minute of that hour is 2035-01-31T09:"
	if got := put("b"); !strings.HasPrefix(got.err, want) || !strings.Contains(got.err, "; try --slack ") {
		t.Errorf("the second: %q", got.err)
	}
	if got := put("c", "--dry-run"); !strings.HasPrefix(got.err, strings.Replace(want, "2 tasks", "3 tasks", 1)) {
		t.Errorf("a dry run: %q", got.err)
	}
	window := []string{"--from", "2035-01-31T08:00:00Z", "--to", "2035-01-31T10:00:00Z"}
	got := ddq(exitOK, append([]string{"forecast", "--topic", "report"}, window...)...)
	if !strings.Contains(got.out, "2035-01-31T09:00:00.000Z    2     2  ▒▒▒▒") {
		t.Errorf("forecast:\n%s%s", got.out, got.err)
	}
	if got := ddq(exitOK, append([]string{"forecast", "--bucket", "1h", "-o", "json"}, window...)...); !strings.Contains(got.out, `{"time":"2035-01-31T09:00:00.000Z","pending":0,"next":2,"later":0,"recipients":0,"exact":true}`) {
		t.Errorf("forecast in JSON:\n%s", got.out)
	}
	got = ddq(exitOK, append([]string{"schedule", "dry-run", "--topic", "report", "-o", "json"}, window...)...)
	if strings.Count(got.out, "\n") != 2 || !strings.Contains(got.out, `"schedule":"b","id":"`) || !strings.Contains(got.out, `"occurrence_time":"2035-01-31T09:00:00.000Z"`) {
		t.Errorf("dry run:\n%s", got.out)
	}
	if got := ddq(exitUsage, "schedule", "dry-run", "--topic", "report"); !strings.Contains(got.err, "--to") {
		t.Errorf("without an end: %s", got.err)
	}
	if got := ddq(exitFailed, "schedule", "dry-run", "nobody", "--topic", "report", "--to", "1d"); !strings.Contains(got.err, "NO_SCHEDULE") {
		t.Errorf("of nobody: %s", got.err)
	}
}
