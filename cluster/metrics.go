package cluster

import "github.com/prometheus/client_golang/prometheus"

// Registerer is where metrics go.
type Registerer = prometheus.Registerer

type metrics struct {
	members                           *prometheus.GaugeVec
	joins, leaves, rejoins, conflicts prometheus.Counter
}

func newMetrics(reg Registerer) *metrics {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	m := &metrics{
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ddq_cluster_members", Help: "Members of the fleet as this node sees it, by state.",
		}, []string{"state"}),
		joins:     counter("ddq_cluster_joins_total", "Members that came."),
		leaves:    counter("ddq_cluster_leaves_total", "Members that left or were given up."),
		rejoins:   counter("ddq_cluster_rejoins_total", "Times that members were found again."),
		conflicts: counter("ddq_cluster_name_conflicts_total", "Announcements of a second node of a name."),
	}
	reg.MustRegister(m.members)
	return m
}

func (m *metrics) set(nodes []Node) {
	count := map[State]int{Joining: 0, Active: 0, Draining: 0}
	for _, n := range nodes {
		count[n.State]++
	}
	for state, n := range count {
		m.members.WithLabelValues(state.String()).Set(float64(n))
	}
}
