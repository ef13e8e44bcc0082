package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// registerer takes metrics; only this file knows whose they are.
type registerer = prometheus.Registerer

// serverMetrics counts calls. Streams count when they end.
type serverMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	streams  *prometheus.GaugeVec
	panics   prometheus.Counter
	stale    prometheus.Counter
	refusals *prometheus.CounterVec
	known    map[string]*methodMetrics    // read only
	recorded func(context.Context) string // see Config; nil: nothing is
}

// methodMetrics are the children that almost every call needs.
type methodMetrics struct {
	ok      prometheus.Counter
	seconds prometheus.Observer
}

// newMetrics registers with reg, which may be nil.
func newMetrics(reg registerer, recorded func(context.Context) string) *serverMetrics {
	auto := promauto.With(reg)
	return &serverMetrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "ddq_grpc_requests_total", Help: "Calls and streams ended, by method and code.",
		}, []string{"method", "code"}),
		seconds: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ddq_grpc_request_seconds",
			Help:    "Time to answer a unary call; long polls include their wait.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 13),
		}, []string{"method"}),
		streams: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ddq_grpc_streams", Help: "Open streams, by method.",
		}, []string{"method"}),
		panics: auto.NewCounter(prometheus.CounterOpts{
			Name: "ddq_grpc_panics_total", Help: "Calls that ended in a panic.",
		}),
		stale: auto.NewCounter(prometheus.CounterOpts{
			Name: "ddq_grpc_stale_deliveries_total",
			Help: "Deliveries given back because half of their hold went by before they were sent.",
		}),
		refusals: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "ddq_auth_observed_refusals_total", Help: "Calls and messages that would be refused, were --auth-mode enforce.",
		}, []string{"reason"}),
		known: map[string]*methodMetrics{}, recorded: recorded,
	}
}

// observed counts what would be refused.
func (m *serverMetrics) observed(reason string) { m.refusals.WithLabelValues(reason).Inc() }

// learn resolves the children of a server's methods. It is called before Serve.
func (m *serverMetrics) learn(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			m.known[name] = &methodMetrics{
				ok:      m.requests.WithLabelValues(name, codes.OK.String()),
				seconds: m.seconds.WithLabelValues(name),
			}
		}
	}
}

func (m *serverMetrics) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began := time.Now()
	resp, err := handler(ctx, req)
	m.observe(ctx, info.FullMethod, time.Since(began).Seconds())
	m.count(info.FullMethod, err)
	return resp, err
}

// observe takes how long a call took, with the trace in which it is recorded, if it is.
func (m *serverMetrics) observe(ctx context.Context, method string, seconds float64) {
	to := m.known[method].seconds
	if m.recorded == nil {
		to.Observe(seconds)
		return
	}
	with, ok := to.(prometheus.ExemplarObserver)
	if id := m.recorded(callerOf(ctx)); ok && id != "" {
		with.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": id})
		return
	}
	to.Observe(seconds)
}

func (m *serverMetrics) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	open := m.streams.WithLabelValues(info.FullMethod)
	open.Inc()
	defer open.Dec()
	err := handler(srv, stream)
	m.count(info.FullMethod, err)
	return err
}

// staleBy counts deliveries that were given back unsent.
func (m *serverMetrics) staleBy(n int) { m.stale.Add(float64(n)) }

func (m *serverMetrics) count(method string, err error) {
	if err == nil {
		m.known[method].ok.Inc()
		return
	}
	m.requests.WithLabelValues(method, status.Code(err).String()).Inc()
}
