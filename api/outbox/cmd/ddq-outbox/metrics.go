package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ddq-io/ddq/api/outbox"
)

// scraping is how long the database may take to say how the outbox is.
const scraping = 5 * time.Second

// metrics are those of an outbox and of the relay in this process.
type metrics struct {
	db    outbox.Database
	relay *outbox.Relay
	log   *slog.Logger

	rows, oldest, bad, enqueued, refused *prometheus.Desc
}

func newMetrics(db outbox.Database, relay *outbox.Relay, log *slog.Logger) *metrics {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &metrics{
		db: db, relay: relay, log: log,
		rows:     desc("ddq_outbox_rows", "Tasks in the outbox that are not yet with ddq."),
		oldest:   desc("ddq_outbox_oldest_seconds", "Since the first of them was written."),
		bad:      desc("ddq_outbox_bad", "Tasks that ddq refused for good, and that are kept."),
		enqueued: desc("ddq_outbox_enqueued_total", "Tasks that this relay handed on."),
		refused:  desc("ddq_outbox_bad_total", "Tasks of this relay that ddq refused for good."),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.rows, m.oldest, m.bad, m.enqueued, m.refused} {
		to <- d
	}
}

// Collect implements prometheus.Collector. While the database is out of reach, what it would
// say is left out.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	n := m.relay.Counts()
	to <- prometheus.MustNewConstMetric(m.enqueued, prometheus.CounterValue, float64(n.Enqueued))
	to <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(n.Refused))
	ctx, cancel := context.WithTimeout(context.Background(), scraping)
	defer cancel()
	s, err := outbox.Inspect(ctx, m.db)
	if err != nil {
		m.log.Warn("outbox out of reach", "err", err)
		return
	}
	to <- prometheus.MustNewConstMetric(m.rows, prometheus.GaugeValue, float64(s.Rows))
	to <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, s.Oldest.Seconds())
	to <- prometheus.MustNewConstMetric(m.bad, prometheus.GaugeValue, float64(s.Bad))
}

// serve answers on addr until stop is called, which waits for its goroutine.
func (m *metrics) serve(addr string) (stop func(), err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // 200: the process lives
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("--http-addr: %v", err)
	}
	m.log.Info("metrics are served", "addr", listener.Addr().String())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: scraping}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("metrics are served no more", "err", err)
		}
	}()
	return func() {
		_ = server.Close() // the listener is gone either way
		<-done
	}, nil
}
