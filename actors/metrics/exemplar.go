package metrics

import (
	"encoding/hex"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/store"
)

// longestTask is the most of an id that an exemplar has room for beside its trace.
const longestTask = prometheus.ExemplarMaxRunes - len("trace_id") - 2*len(store.Trace{}.ID) - len("task")

// observeTraced is Observe with an exemplar, which leads from a bucket to the trace of a task that
// is in it.
func observeTraced(h prometheus.Histogram, v float64, t *store.Task) {
	with, ok := h.(prometheus.ExemplarObserver)
	if !ok {
		h.Observe(v)
		return
	}
	labels := prometheus.Labels{"trace_id": hex.EncodeToString(t.Trace.ID[:])}
	if len(t.ID) <= longestTask {
		labels["task"] = t.ID
	}
	with.ObserveWithExemplar(v, labels)
}
