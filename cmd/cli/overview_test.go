//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/overview"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

func TestOverviewViews(t *testing.T) {
	window := overview.Window{
		From: at("2030-01-31T15:00:00Z"), Step: 5 * time.Second, Steps: 3, Delivered: []int64{0, 4, 1}, Failed: []int64{1, 0, 0},
		PerSecond: overview.Rates{Enqueued: 1234.4, Delivered: 0.333, Failed: 0.067}, Lateness: overview.Lateness{P50: time.Millisecond, P99: 61 * time.Second, Max: 2 * time.Minute},
	}
	busy := viewOverview(&overview.Topic{Name: "mail", Scheduled: 5, Ready: 4, Running: 3, Done: 2, Dead: 1, Lateness: time.Second, Pulse: &overview.Pulse{Minute: window, Hour: window}})
	quiet := viewOverview(&overview.Topic{Name: "sms"})
	var out bytes.Buffer
	if err := terminal.WriteJSON(&out, busy); err != nil {
		t.Fatal(err)
	}
	half := `{"from":"2030-01-31T15:00:00.000Z","step_ms":5000,"delivered":[0,4,1],"failed":[1,0,0],` +
		`"per_second":{"enqueued":1234.4,"delivered":0.333,"acked":0,"failed":0.067,"dead":0},"late_ms":{"p50":1,"p99":61000,"max":120000}}`
	want := `{"topic":"mail","scheduled":5,"ready":4,"running":3,"done":2,"dead":1,"lateness_ms":1000,"minute":` + half + `,"hour":` + half + "}\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	for row, want := range map[string]string{
		text(busy.row()):  "mail|5|4|3|1|1234|0.33||0.07|1ms|1m1s|2m0s",
		text(quiet.row()): "sms|0|0|0|0|||||||",
	} {
		if row != want {
			t.Errorf("row is %s, want %s", row, want)
		}
	}
}

func text(row []any) string {
	var out []string
	for _, cell := range row {
		out = append(out, terminal.Printable(fmt.Sprint(cell)))
	}
	return strings.Join(out, "|")
}

func TestOverviewOfAServer(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--payload", "x", "--delay", "1h")
	ddq(exitOK, "enqueue", "--topic", "later", "--payload", "x", "--delay", "1h", "--count", "3")
	if got := ddq(exitOK, "overview", "later", "-o", "json"); !strings.HasPrefix(got.out, `{"topic":"later","scheduled":3,"ready":0,`) || strings.Count(got.out, "\n") != 1 {
		t.Errorf("got %s", got.out)
	}
	if table := ddq(exitOK, "overview").out; !strings.Contains(table, "DELIVERED/S") || !strings.Contains(table, "mail") {
		t.Errorf("got\n%s", table)
	}
	if wrong := ddq(exitFailed, "overview", "none"); !strings.Contains(wrong.err, "NO_TOPIC") {
		t.Errorf("stderr = %q", wrong.err)
	}
	if none := ddq(exitOK, "cluster", "workers", "--topic", "mail"); !strings.Contains(none.err, "no workers") {
		t.Errorf("stderr = %q", none.err)
	}
}

func TestOverviewIsFollowed(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "enqueue", "--topic", "mail", "--payload", "x", "--delay", "1h")
	s, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := 0
	for all, err := range s.WatchOverview(t.Context(), "mail") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			ddq(exitOK, "enqueue", "--topic", "mail", "--payload", "x", "--delay", "1h")
		}
		if all.Topics[0].Scheduled == 2 {
			break
		}
	}
	for _, err := range s.WatchOverview(t.Context(), "none") {
		if !errors.Is(err, client.ErrNotFound) {
			t.Errorf("a topic that is not there: %v", err)
		}
	}

	ctx, interrupt := context.WithCancel(t.Context())
	out := &twice{then: interrupt}
	code := Run(ctx, Streams{In: strings.NewReader(""), Out: out, Err: t.Output(), Environ: []string{"DDQ_ADDR=" + n.GRPCAddr()}}, []string{"overview", "-f", "-o", "json"})
	if code != exitOK || strings.Count(out.String(), `{"topic":"mail","scheduled":2,`) < 2 {
		t.Errorf("interrupted: exit code %d, %s", code, out)
	}
}

// twice calls then when something is written for the second time.
type twice struct {
	bytes.Buffer
	writes int
	then   func()
}

func (w *twice) Write(b []byte) (int, error) {
	if w.writes++; w.writes == 2 {
		w.then()
	}
	return w.Buffer.Write(b)
}
