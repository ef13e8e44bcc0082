package node

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/ui"
	"github.com/ddq-io/ddq/cmd/node/spans"
)

// TraceIDMark is where the id of a trace goes in --trace-url.
const TraceIDMark = ui.TraceID

// TraceURLHelp is what --trace-url is, of every command that has it.
const TraceURLHelp = "where traces are looked at, such as 'https://traces.example.com/" + TraceIDMark + "'; pages and ddq task trace have links there"

// TracingConfig says which deliveries are spans, and where those go.
type TracingConfig struct {
	Endpoint     string // empty: there are none
	URL          string // where traces are looked at, with TraceIDMark in it; empty: nobody said
	Sample       float64
	Join         time.Duration
	MaxPerSecond int
}

func (t *TracingConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&t.Endpoint, "otlp-endpoint", "", "where spans of deliveries go, over gRPC: a URL such as https://collector:4317; http:// for addresses of this machine, or with --insecure (default none)")
	fs.StringVar(&t.URL, "trace-url", "", TraceURLHelp)
	fs.Float64Var(&t.Sample, "trace-sample", 0, "share of the tasks without a trace context for which a trace is begun: 0 to 1; of the others the producer decides")
	DurationVar(fs, &t.Join, "trace-join", time.Minute, "how long after it was enqueued a task may be due to be in the trace of its producer; later ones have a trace of their own, with a link")
	fs.IntVar(&t.MaxPerSecond, "trace-max-per-s", 200, "most spans that are begun in a second; what is over is counted")
}

func (t *TracingConfig) check(insecure bool) error {
	switch u, err := url.Parse(t.Endpoint); {
	case t.Endpoint == "":
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https":
		return wrongf("--otlp-endpoint is a URL such as https://collector:4317, without a password, not %q", withoutLogin(t.Endpoint))
	case u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()):
		return wrongf("--otlp-endpoint %s: spans would cross the network unencrypted; use https://, or add --insecure", t.Endpoint)
	}
	switch u, err := url.Parse(strings.ReplaceAll(t.URL, TraceIDMark, "0")); {
	case t.URL == "":
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.Contains(t.URL, TraceIDMark): // pages show it to everybody
		return wrongf("--trace-url is a URL such as https://traces.example.com/%s, without a password, not %q", TraceIDMark, withoutLogin(t.URL))
	}
	switch {
	case !(t.Sample >= 0 && t.Sample <= 1): // NaN is neither
		return wrongf("--trace-sample is 0 to 1, not %v", t.Sample)
	case t.Join < 0:
		return wrongf("--trace-join must not be negative")
	case t.MaxPerSecond < 1 && t.Endpoint != "":
		return wrongf("--trace-max-per-s is at least 1, not %d", t.MaxPerSecond)
	}
	return nil
}

// withoutLogin is a URL for an error, without the user and the password that it may have.
func withoutLogin(raw string) string {
	if at := strings.LastIndex(raw, "@"); at >= 0 {
		return "…" + raw[at:]
	}
	return raw
}

// newSpans returns nil when none are wanted.
func newSpans(cfg *Config, log *slog.Logger, reg *prometheus.Registry) (*spans.Spans, error) {
	t := &cfg.Tracing
	if t.Endpoint == "" {
		return nil, nil
	}
	made, err := spans.New(spans.Config{
		Endpoint: t.Endpoint, Sample: t.Sample, Join: t.Join, MaxPerSecond: t.MaxPerSecond, Node: cfg.Actors.Node, Version: ReadBuild().Version,
	}, log, reg)
	if err != nil {
		return nil, wrongf("--otlp-endpoint: %v", err)
	}
	return made, nil
}

// spansOf is an interface that is nil when there are no spans.
func spansOf(s *spans.Spans) delivery.Spans {
	if s == nil {
		return nil
	}
	return s
}

// recordedOf is nil when there are no spans.
func recordedOf(s *spans.Spans) func(context.Context) string {
	if s == nil {
		return nil
	}
	return spans.Recorded
}

// stopSpans sends the last of them, once nothing is delivered any more.
func stopSpans(s *spans.Spans) func(context.Context) error {
	return func(ctx context.Context) error { s.Close(ctx); return nil }
}
