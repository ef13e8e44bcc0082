package metrics

import "github.com/prometheus/client_golang/prometheus"

// QuotaMetrics are about the quotas of namespaces.
type QuotaMetrics struct {
	over  *prometheus.CounterVec
	names *names
}

func newQuotaMetrics(f factory) QuotaMetrics {
	return QuotaMetrics{names: new(names), over: f.counters("ddq_over_quota_total", "What was refused because a namespace has, or does, as much as a quota allows, by namespace and quota; each task of a batch.", "namespace", "quota")}
}

// CountOverQuota counts a refusal.
func (m *QuotaMetrics) CountOverQuota(namespace, quota string) {
	m.over.WithLabelValues(m.names.label(namespace), quota).Inc()
}
