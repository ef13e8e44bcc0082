package spans

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// collectors are exporters as collectors may be: one that refuses, and one that hangs until it is let go.
type refusing struct{}

func (refusing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return errors.New("away") }
func (refusing) Shutdown(context.Context) error                        { return nil }

type hanging struct{ until chan struct{} }

func (h hanging) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { <-h.until; return nil }
func (hanging) Shutdown(context.Context) error                          { return nil }

// exported runs a test with spans that go to an exporter, and what the log says.
func exported(t *testing.T, exporter sdk.SpanExporter, test func(t *testing.T, s *Spans, said *bytes.Buffer, lost func(reason string) float64)) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		dropped, err := newDrops(reg)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		s, err := to(queueTo(exporter, dropped, slog.New(slog.NewTextHandler(&said, nil))), Config{MaxPerSecond: 1}, dropped)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, &said, func(reason string) float64 { return lost(t, reg, reason) })
		s.Close(t.Context())
	})
}

// lost is a count of ddq_spans_dropped_total.
func lost(t *testing.T, reg *prometheus.Registry, reason string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].Metric {
		if m.Label[0].GetValue() == reason {
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

func record(s *Spans, n int) {
	for range n {
		_, span := s.tracer.Start(context.Background(), "x")
		span.End()
	}
}

// A collector that hangs makes nobody wait: what does not fit into the queue is counted.
func TestCollectorThatHangsMakesNobodyWait(t *testing.T) {
	c := hanging{make(chan struct{})}
	exported(t, c, func(t *testing.T, s *Spans, _ *bytes.Buffer, lost func(string) float64) {
		began := time.Now()
		record(s, 3*queueSpans)
		if d := time.Since(began); d != 0 {
			t.Errorf("spans wait for %v", d)
		}
		if n := lost("full"); n < queueSpans || n > 2*queueSpans {
			t.Errorf("%v are dropped", n)
		}
		close(c.until)
	})
}

// A collector that refuses is counted, and said once a minute.
func TestCollectorThatRefusesIsSaidOnceAMinute(t *testing.T) {
	exported(t, refusing{}, func(t *testing.T, s *Spans, said *bytes.Buffer, lost func(string) float64) {
		for range 5 {
			record(s, 10)
			time.Sleep(20 * time.Second)
			synctest.Wait()
		}
		if n := lost("export"); n != 50 {
			t.Errorf("%v are dropped, want 50", n)
		}
		if n := strings.Count(said.String(), "spans are not taken"); n != 2 {
			t.Errorf("it is said %d times in 100 s", n)
		}
	})
}

// What is over the rate is not begun, and counted.
func TestSpansOverTheRateAreNotBegun(t *testing.T) {
	exported(t, refusing{}, func(t *testing.T, s *Spans, _ *bytes.Buffer, lost func(string) float64) {
		begun := 0
		for range 30 {
			if s.takes() {
				begun++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := lost("rate"); begun < 3 || begun > 4 || n != float64(30-begun) {
			t.Errorf("%d are begun in 3 s, and %v dropped", begun, n)
		}
	})
}
