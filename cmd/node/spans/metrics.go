package spans

import "github.com/prometheus/client_golang/prometheus"

// registerer is where metrics go.
type registerer = prometheus.Registerer

// drops count the spans that are lost.
type drops struct {
	rate   prometheus.Counter // more in a second than are begun
	full   prometheus.Counter // no room in the queue
	export prometheus.Counter // the collector did not take them
}

func newDrops(reg registerer) (drops, error) {
	by := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ddq_spans_dropped_total", Help: "Spans of deliveries that were not recorded: over the rate, with the queue full, or not taken by the collector.",
	}, []string{"reason"})
	return drops{rate: by.WithLabelValues("rate"), full: by.WithLabelValues("full"), export: by.WithLabelValues("export")}, reg.Register(by)
}
