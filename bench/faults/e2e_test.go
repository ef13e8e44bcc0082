package faults

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/binary"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/checker"
	"github.com/ddq-io/ddq/bench/tap"
)

// TestRoundOfKills plays a round as a user does, with workers in all languages, and verifies its
// ledgers once more.
func TestRoundOfKills(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the server")
	}
	dir := t.TempDir()
	bin, err := binary.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sdks := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../tools/sdks-unpacked.sh", sdks).CombinedOutput(); err != nil {
		t.Fatalf("%v (tools/deps.sh tests installs what is missing)\n%s", err, out)
	}
	relay := filepath.Join(t.TempDir(), "ddq-outbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../api/outbox", "-o", relay, "./cmd/ddq-outbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out, log bytes.Buffer
	cmd := NewCommand()
	cmd.SetArgs([]string{
		"--store", "embedded", "--faults", "kill", "--seed", "1", "--for", "5s", "--rate", "100", "--ledger", dir, "--server-bin", bin, "-o", "json",
		"--sdks", "python,typescript", "--sdk-dir", sdks, "--outbox", relay,
	})
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	var line Line
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if !line.OK || line.Strikes == 0 || line.Verdict.Acknowledged < 200 || line.Verdict.Told < 200 || !line.Verdict.Audited {
		t.Errorf("got %+v", line)
	}
	h, err := checker.Read(line.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for what, such := range map[string]func(string, *ledger.Event) bool{
		"chain of tasks that acks enqueue came to its end": func(_ string, e *ledger.Event) bool {
			return e.Kind == ledger.Delivered && e.Topic == plan.Next && e.Cause != ""
		},
		"row of an outbox was handed on": func(client string, e *ledger.Event) bool {
			return client == "outbox" && e.Kind == ledger.Answer && e.Result == ledger.OK
		},
		"poisoned row of an outbox was refused": func(client string, e *ledger.Event) bool {
			return client == "outbox" && e.Kind == ledger.Answer && e.Result == ledger.Refused
		},
		"ack of Python was taken":     acked("w-python"),
		"ack of TypeScript was taken": acked("w-typescript"),
		"answer was lost":             func(_ string, e *ledger.Event) bool { return e.Reason == tap.ErrLost.Error() },
	} {
		if !happened(t, line.Ledger, such) {
			t.Errorf("no %s", what)
		}
	}
	if v := checker.Check(h, checker.Rules{}); !v.OK() || v.Deliveries != line.Verdict.Deliveries {
		t.Errorf("verified again: %s, %d deliveries", v.Summary(), v.Deliveries)
	}
}

// acked are the answers to acks of a worker that were taken.
func acked(worker string) func(string, *ledger.Event) bool {
	return func(client string, e *ledger.Event) bool {
		return client == worker && e.Kind == ledger.Answer && e.Op == ledger.Ack && e.Result == ledger.OK
	}
}

// happened reports whether a client of a round wrote such a thing down.
func happened(t *testing.T, dir string, such func(client string, e *ledger.Event) bool) bool {
	t.Helper()
	files, err := ledger.ReadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, events := range files {
		for i := range events {
			if such(events[i].Client, &events[i]) {
				return true
			}
		}
	}
	return false
}

func TestListNamesEveryFault(t *testing.T) {
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SetArgs([]string{"--list"})
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, f := range Faults() {
		if !strings.Contains(out.String(), f.Name) || f.What == "" || f.Cost == "" || len(f.Stores) == 0 || f.strike == nil {
			t.Errorf("%s is not told whole", f.Name)
		}
	}
}

// TestEachOnceGoesRoundTheStores: every fault on one store that it applies to, and on
// all of them as seeds go by.
func TestEachOnceGoesRoundTheStores(t *testing.T) {
	c := campaign{stores: stand.Stores(), eachOnce: true}
	played := map[string]map[string]bool{}
	for c.Seed = range uint64(len(stand.Stores())) {
		rounds, err := c.rounds()
		if err != nil {
			t.Fatal(err)
		}
		if len(rounds) != len(Faults()) {
			t.Fatalf("%d rounds of %d faults", len(rounds), len(Faults()))
		}
		for _, r := range rounds {
			if !r.fault.AppliesTo(r.o.Store) {
				t.Errorf("%s is played on %s", r.fault.Name, r.o.Store)
			}
			if played[r.fault.Name] == nil {
				played[r.fault.Name] = map[string]bool{}
			}
			played[r.fault.Name][r.o.Store] = true
		}
	}
	for _, f := range Faults() {
		if len(played[f.Name]) != len(f.Stores) {
			t.Errorf("%s was played on %v, want %v", f.Name, played[f.Name], f.Stores)
		}
	}
}

// TestCampaignGoesOnAfterAFailure: a round that cannot be played tells why, and the
// command fails in the end.
func TestCampaignGoesOnAfterAFailure(t *testing.T) {
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SetArgs([]string{"--store", "embedded", "--faults", "kill,stop", "--for", "5s", "--ledger", t.TempDir(), "--server-bin", "nobody-has-this", "-o", "json"})
	cmd.SetOut(&out)
	cmd.SetErr(new(bytes.Buffer))
	err := cmd.Execute()
	if lines := strings.Count(out.String(), `"failed":`); lines != 2 || err == nil || !strings.Contains(err.Error(), "2 of 2") {
		t.Errorf("%d failures are told, and: %v\n%s", lines, err, out.String())
	}
}

func TestPickRefusesWhatCannotBe(t *testing.T) {
	for _, args := range [][]string{
		{"--faults", "nonsense"}, {"--faults", "redis-kill", "--store", "embedded"}, {"--store", "nowhere"}, {"--for", "1s"}, {"--rate", "0"}, {"-o", "xml"},
		{"--sdks", "cobol"}, {"--sdks", "python", "--sdk-dir", "nowhere"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(args)
		cmd.SetOut(new(bytes.Buffer))
		cmd.SetErr(new(bytes.Buffer))
		if err := cmd.Execute(); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
