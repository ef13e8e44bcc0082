//go:build linux

package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/pgtest"
)

// scrape is what metrics say.
func scrape(t *testing.T, m *metrics) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Errorf("code %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetricsSayHowTheOutboxIs(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	pool := pgtest.Pool(t, server.Database(t))
	db := outbox.Postgres(pool)
	if err := outbox.Install(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := outbox.EnqueueMany(t.Context(), tx, []client.Task{{Topic: "t"}, {Topic: "t"}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics(db, outbox.NewRelay(db, nil, outbox.RelayConfig{}), slog.New(slog.DiscardHandler))
	for _, want := range []string{"ddq_outbox_rows 2\n", "ddq_outbox_oldest_seconds ", "ddq_outbox_bad 0\n", "ddq_outbox_enqueued_total 0\n", "ddq_outbox_bad_total 0\n"} {
		if got := scrape(t, m); !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	pool.Close()
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if got := scrape(t, m); strings.Contains(got, "ddq_outbox_rows ") || !strings.Contains(got, "ddq_outbox_enqueued_total 0\n") {
		t.Errorf("without a database\n%s", got)
	}
}

func TestMetricsAreServedUntilTheyAreStopped(t *testing.T) {
	m := newMetrics(nil, nil, slog.New(slog.DiscardHandler))
	if _, err := m.serve("nowhere:x"); err == nil {
		t.Error("an address that is none was taken")
	}
	var log strings.Builder
	m.log = slog.New(slog.NewTextHandler(&log, nil))
	stop, err := m.serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, addr, _ := strings.Cut(strings.TrimSpace(log.String()), "addr=")
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("code %d", answer.StatusCode)
	}
	stop()
	if _, err := http.DefaultClient.Do(request); err == nil {
		t.Error("it still answers")
	}
}
