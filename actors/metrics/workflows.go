package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Workflows are the metrics of workflows, counted by the owners of their shards.
type Workflows struct {
	steps      *prometheus.CounterVec
	ended      *prometheus.CounterVec
	took       *prometheus.HistogramVec
	names      *names
	transition prometheus.Histogram
	Repaired   prometheus.Counter
	UndoFailed prometheus.Counter
}

func newWorkflows(f factory) Workflows {
	return Workflows{
		steps: f.counters("ddq_workflow_steps_total", "Steps of workflows that ended, by what became of them. Each copy counts.", "topic", "outcome"),
		ended: f.counters("ddq_workflows_ended_total", "Workflows that ended, by their state.", "topic", "state"),
		took: f.histograms("ddq_workflow_seconds", "How long workflows took from their start to their end, by their name: the first 200, and other.",
			[]float64{.01, .1, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400}, "topic", "name"),
		names: new(names),
		transition: f.histogram("ddq_workflow_transition_seconds", "From the end of a step to the commit that made what comes next.",
			[]float64{.0005, .001, .002, .005, .01, .02, .05, .1, .5, 1, 5, 30}),
		Repaired:   f.counter("ddq_workflows_repaired_total", "Workflows that had no cause to go on, or were not told of the end of a step, and were taken further. Must stay zero."),
		UndoFailed: f.counter("ddq_undo_failed_total", "Undos of steps that failed for good."),
	}
}

// CountSteps counts steps that ended.
func (w *Workflows) CountSteps(topic, outcome string, n int) {
	w.steps.WithLabelValues(topic, outcome).Add(float64(n))
}

// CountEnded counts a workflow that ended, and how long it took.
func (w *Workflows) CountEnded(topic, name, state string, took time.Duration) {
	w.ended.WithLabelValues(topic, state).Inc()
	w.took.WithLabelValues(topic, w.names.label(name)).Observe(max(0, took).Seconds())
}

// CountTransition counts the end of a step that was taken.
func (w *Workflows) CountTransition(took time.Duration) {
	w.transition.Observe(max(0, took).Seconds())
}

// forget removes what is of a topic.
func (w *Workflows) forget(topic string) {
	w.steps.DeletePartialMatch(prometheus.Labels{"topic": topic})
	w.ended.DeletePartialMatch(prometheus.Labels{"topic": topic})
	w.took.DeletePartialMatch(prometheus.Labels{"topic": topic})
}
