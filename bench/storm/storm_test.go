package storm

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/binary"
	"github.com/ddq-io/ddq/bench/ledger"
)

// TestSmallStorm plays a storm as a user does.
func TestSmallStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the server")
	}
	bin, err := binary.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"embedded", "redis-everysec"} {
		t.Run(store, func(t *testing.T) {
			if _, err := exec.LookPath("redis-server"); err != nil && strings.HasPrefix(store, "redis") {
				t.Skip("redis-server is not installed")
			}
			var out, log bytes.Buffer
			cmd := NewCommand()
			cmd.SetArgs([]string{"--store", store, "--tasks", "300", "--edits", "3000", "--editors", "32", "--seed", "1", "--server-bin", bin, "-o", "json"})
			cmd.SetOut(&out)
			cmd.SetErr(&log)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v\n%s%s", err, out.String(), log.String())
			}
			var r Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatalf("%q: %v", out.String(), err)
			}
			answered := 0
			for _, kinds := range r.Answers {
				for _, n := range kinds {
					answered += n
				}
			}
			if answered != 3000 || r.Unclear != 0 || r.Deliveries == 0 || r.Answers[ledger.Update]["changed"] == 0 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestJudgeSeesWhatDoesNotAgree: an edit that was answered as changed and is not in what
// was delivered, and an answer that says nothing.
func TestJudgeSeesWhatDoesNotAgree(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*book)
		fine  bool
	}{
		{"as it was", func(*book) {}, true},
		{"an edit that is not delivered", func(b *book) { b.edits[0].answer = changed; b.edits[0].version = 2 }, false},
		{"an answer that says nothing", func(b *book) { b.edits[0].answer = unclear }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStorm(nil, Options{Tasks: 1, Edits: 1})
			b := &s.books[0]
			b.created, b.due = span{1, 2}, s.start.UnixMilli()
			b.edits = []edit{{op: update, payload: 1, answer: delivered, span: span{1e6, 2e6}}}
			s.Append(ledger.Event{Kind: ledger.Delivered, Task: name(0), Attempt: 1, Token: "a", HoldMS: 1000, Sum: sumOf(0), Version: 1})
			s.Append(ledger.Event{Kind: ledger.Call, Op: ledger.Ack, Call: s.NextCall(), Task: name(0), Token: "a"})
			b.hands[0].Mono, b.hands[1].Mono = 3e6, 4e6
			test.spoil(b)
			if err := s.judge(1).Err(); (err == nil) != test.fine {
				t.Errorf("the judge says %v", err)
			}
		})
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--tasks", "0"}, {"--edits", "-1"}, {"--editors", "0"}, {"-o", "xml"}, {"--store", "nowhere"}} {
		cmd := NewCommand()
		cmd.SetArgs(args)
		cmd.SetOut(new(bytes.Buffer))
		cmd.SetErr(new(bytes.Buffer))
		if err := cmd.Execute(); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
