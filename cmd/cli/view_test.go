package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/journal"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/cli/topics"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files with what is printed now")

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// sampleTask has every field set.
func sampleTask() client.Snapshot {
	return client.Snapshot{
		Topic: "mail", ID: "order-1", Payload: []byte(`{"to":"a<b>@example.com"}`), Attributes: map[string]string{"tenant": "acme", "kind": "invoice"},
		State: client.StateDead, Due: at("2030-01-31T16:04:05.25+01:00"), CreatedAt: at("2030-01-31T15:00:00Z"), Version: 3, Expires: at("2030-02-01T00:00:00Z"),
		RetryCount: 4, MaxRetries: 4, VisibilityTimeout: 90 * time.Second,
		Backoff:   &client.Backoff{Kind: client.BackoffExponential, Base: time.Second, Max: time.Minute, JitterPercent: 10},
		LastError: "exit status 1: no route", DeadReason: client.DeadReasonMaxRetries, FinishedAt: at("2030-01-31T15:10:00.001Z"),
		Worker: "w1", HoldDeadline: at("2030-01-31T15:11:00Z"),
		Journal: []journal.Entry{
			{Name: "charge", Size: 9, Kept: at("2030-01-31T15:05:00.5Z"), Value: []byte("paid\n for")},
			{Name: "ship", Size: 2, Kept: at("2030-01-31T15:06:00Z"), Value: []byte{0xff, 0x00}},
			{Name: "masked", Size: 1 << 20, Kept: at("2030-01-31T15:07:00Z")},
		},
	}
}

func sampleTopic() client.TopicStatus {
	s := client.TopicStatus{Depth: client.Depth{Scheduled: 5, Ready: 4, Running: 3, Done: 2, Dead: 1}, Subscriptions: 7, Durability: "synced"}
	s.Name, s.Version, s.DeliveryPaused = "mail", 3, true
	s.Policy = client.Policy{
		Shards: new(8), VisibilityTimeout: new(30 * time.Second), MaxRetries: new(3),
		Backoff:  &client.Backoff{Kind: client.BackoffQuadratic, Base: 2 * time.Second},
		MaxDelay: new(3653 * 24 * time.Hour), MaxPayload: new(1 << 20), DoneRetention: new(time.Hour),
	}
	byDefault := s.Policy
	byDefault.MaxRetries, byDefault.Backoff = new(25), &client.Backoff{Kind: client.BackoffFixed, Base: time.Second}
	s.DefaultPolicy = &byDefault
	return s
}

func printTopic(c *cli, v topics.View) error { return c.Record(v, v.Rows()...) }

// printed is the output of f in both forms.
func printed(t *testing.T, format string, f func(c *cli) error) []byte {
	t.Helper()
	var out bytes.Buffer
	c := newCLI(Streams{Out: &out})
	c.Output = format
	if err := f(c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPrintedForms(t *testing.T) {
	binary := client.Snapshot{Topic: "mail", ID: "order-2", Payload: []byte{0xff, 0x00}, State: client.StateScheduled, Due: at("2030-01-01T00:00:00Z"), CreatedAt: at("2029-01-01T00:00:00Z"), MaxRetries: 3}
	for _, tc := range []struct {
		name string
		f    func(c *cli) error
	}{
		{"task", func(c *cli) error { return taskCommands{c}.print(sampleTask()) }},
		{"task-binary", func(c *cli) error { return taskCommands{c}.print(binary) }},
		{"topic", func(c *cli) error { return printTopic(c, topics.ViewOf(sampleTopic().Topic)) }},
		{"topic-status", func(c *cli) error { return printTopic(c, topics.ViewOfStatus(sampleTopic())) }},
		{"tasks", func(c *cli) error {
			out := c.Listing("id", "state", "last error")
			err := terminal.Each(func(yield func(client.Snapshot, error) bool) {
				_ = yield(sampleTask(), nil) && yield(binary, nil) && yield(client.Snapshot{}, errors.New("beyond the limit"))
			}, 2, func(t client.Snapshot) error {
				return out.Add(t, t.ID, t.State.String(), terminal.Shorten(t.LastError, 12))
			})
			return out.End(err, "No tasks.")
		}},
		{"receipts", func(c *cli) error {
			n, err := printReceipts(c, []client.Result{
				{Receipt: client.Receipt{Topic: "mail", ID: "a", Due: at("2030-01-01T00:00:00.0005Z")}},
				{Err: errors.New("refused")},
				{Receipt: client.Receipt{Topic: "mail", ID: "b", Due: at("2030-01-01T00:00:00Z"), Deduplicated: true}},
				{Receipt: client.Receipt{Topic: "mail", ID: "c", Due: at("2030-01-01T00:00:00Z"), Replaced: client.StateDead}},
			})
			if n != 3 {
				t.Errorf("stored = %d, want 3", n)
			}
			return err
		}},
		{"dead", func(c *cli) error {
			return deadLetterCommands{c}.print(nil, deadResult{Topic: "mail", Requeued: new(int64(2))}, "%d dead letters requeued", 2)
		}},
	} {
		for _, format := range []string{terminal.FormatJSON, terminal.FormatTable} {
			t.Run(tc.name+"/"+format, func(t *testing.T) {
				golden(t, filepath.Join("testdata", tc.name+"."+format), printed(t, format, tc.f))
			})
		}
	}
}

// golden compares with a file, which -rewrite makes anew.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s\ngot\n%s\nwant\n%s", file, got, want)
	}
}

func TestMissingDeadLettersFailAfterTheResult(t *testing.T) {
	var out bytes.Buffer
	c := newCLI(Streams{Out: &out})
	c.Output = terminal.FormatJSON
	err := deadLetterCommands{c}.print(nil, deadResult{Topic: "mail", Deleted: new(int64(1)), NotFound: []string{"x"}}, "%d deleted", 1)
	if err == nil || out.String() != `{"topic":"mail","deleted":1,"not_found":["x"]}`+"\n" {
		t.Errorf("err = %v, stdout %q", err, out.String())
	}
}
