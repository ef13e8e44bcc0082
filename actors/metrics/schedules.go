package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/store"
)

// Schedules are the metrics of what comes again.
type Schedules struct {
	occurrences    *prometheus.CounterVec
	commits        *prometheus.CounterVec
	lateness, lead prometheus.Histogram
	schedules      *prometheus.GaugeVec
	cells, parcels *prometheus.GaugeVec
	recipients     *prometheus.CounterVec
	behind         prometheus.Histogram
	Dropped        prometheus.Counter
	Corrupt        prometheus.Counter
	Repaired       prometheus.Counter
}

func newSchedules(f factory) Schedules {
	return Schedules{
		occurrences: f.counters("ddq_occurrences_total", "Occurrences of schedules, by what became of them: a run was made, or why not.", "topic", "outcome"),
		commits:     f.counters("ddq_commits_total", "Changes of cells by the owners of their shards, by kind of cell and outcome.", "kind", "status"),
		lateness: f.histogram("ddq_occurrence_lateness_seconds", "How much later than its occurrence a run of a timetable was made; 0: before it.",
			[]float64{0, .001, .01, .1, 1, 5, 15, 60, 600, 3600}),
		lead: f.histogram("ddq_schedule_lead_seconds", "How long before its occurrence a run was made. Near zero is late: runs are made 5 s ahead where none is open.",
			[]float64{.01, .1, .5, 1, 2, 3, 4, 5, 10, 30, 60, 120, 300}),
		schedules:  f.gauges("ddq_schedules", "Schedules in the shards that this node should own, by state. Counted in rounds of 10,000 cells in 15 s.", "topic", "state"),
		cells:      f.gauges("ddq_cells", "Cells in the shards that this node should own, by kind. Counted with ddq_schedules.", "kind"),
		parcels:    f.gauges("ddq_parcels_waiting", "What the ends of tasks, and other shards, have left for cells, and cells for other shards. Counted with ddq_schedules.", "box"),
		recipients: f.counters("ddq_walk_recipients_total", "Recipients that runs of audiences came by, by what became of them: a task was made, or why not.", "outcome"),
		behind: f.histogram("ddq_walk_behind_seconds", "How late the places were for which a step of a run of an audience made tasks. Steps are made 30 s ahead; above zero is late.",
			[]float64{0, .01, .1, .5, 1, 5, 10, 30, 60, 300, 1800}),
		Dropped:  f.counter("ddq_parcels_dropped_total", "Ends of tasks that were to be told to a cell that is gone."),
		Repaired: f.counter("ddq_runs_repaired_total", "Runs whose end was not told, and was found when they had been open for an hour. Must stay zero."),
		Corrupt:  f.counter("ddq_corrupt_cells_total", "Cells that could not be read, and were put aside."),
	}
}

// CountMade counts a run that was made ahead of its occurrence, or behind it.
func (s *Schedules) CountMade(topic string, ahead time.Duration) {
	s.occurrences.WithLabelValues(topic, "made").Inc()
	s.lateness.Observe(max(0, -ahead).Seconds())
	if ahead >= 0 {
		s.lead.Observe(ahead.Seconds())
	}
}

// CountSkipped counts occurrences of which no run was made.
func (s *Schedules) CountSkipped(topic, why string, n int64) {
	s.occurrences.WithLabelValues(topic, why).Add(float64(n))
}

// CountCommit counts a change of a cell, as the store answered.
func (s *Schedules) CountCommit(kind string, status store.Status) {
	s.commits.WithLabelValues(kind, status.String()).Inc()
}

// CountRecipients counts recipients by what became of them in a run.
func (s *Schedules) CountRecipients(outcome string, n int64) {
	s.recipients.WithLabelValues(outcome).Add(float64(n))
}

// CountStep counts a step of a run of an audience, by how late its first place is.
func (s *Schedules) CountStep(late time.Duration) { s.behind.Observe(late.Seconds()) }

// forget removes what is of a topic.
func (s *Schedules) forget(topic string) {
	s.occurrences.DeletePartialMatch(prometheus.Labels{"topic": topic})
}
