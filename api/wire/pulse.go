package wire

import (
	"maps"
	"slices"

	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// Pulse is what has happened to the tasks of a topic, for people; nil when nothing has.
func Pulse(r *pulse.Report) *ddqv1.Pulse {
	if r == nil {
		return nil
	}
	return &ddqv1.Pulse{Minute: window(&r.Minute), Hour: window(&r.Hour)}
}

func window(w *pulse.Window) *ddqv1.PulseWindow {
	return &ddqv1.PulseWindow{
		FromUnixMs: int64(w.From), StepMs: int64(w.Step), Steps: int32(w.Steps), //nolint:gosec // there are 60 at the most
		Enqueued: w.Counts[pulse.Enqueued], Delivered: w.Counts[pulse.Delivered], Acked: w.Counts[pulse.Acked],
		Failed: w.Counts[pulse.Failed], Dead: w.Counts[pulse.Dead],
		LatestMs: w.Latest,
		PerSecond: &ddqv1.PulseRates{
			Enqueued: w.Rate(pulse.Enqueued), Delivered: w.Rate(pulse.Delivered), Acked: w.Rate(pulse.Acked),
			Failed: w.Rate(pulse.Failed), Dead: w.Rate(pulse.Dead),
		},
		Lateness: &ddqv1.Lateness{P50Ms: w.LateAt(50), P99Ms: w.LateAt(99), MaxMs: w.Max},
	}
}

// PeerPulses are the pulses of a node, for the others.
func PeerPulses(reports map[string]*pulse.Report) []*ddqv1.PeerPulse {
	out := make([]*ddqv1.PeerPulse, 0, len(reports))
	for _, topic := range slices.Sorted(maps.Keys(reports)) {
		r := reports[topic]
		out = append(out, &ddqv1.PeerPulse{Topic: topic, Minute: peerWindow(&r.Minute), Hour: peerWindow(&r.Hour)})
	}
	return out
}

func peerWindow(w *pulse.Window) *ddqv1.PeerPulseWindow {
	out := &ddqv1.PeerPulseWindow{
		FromUnixMs: int64(w.From),
		Enqueued:   w.Counts[pulse.Enqueued], Delivered: w.Counts[pulse.Delivered], Acked: w.Counts[pulse.Acked],
		Failed: w.Counts[pulse.Failed], Dead: w.Counts[pulse.Dead],
		LatestMs: w.Latest, MaxLateMs: w.Max,
	}
	if w.Late != nil {
		for ms, n := range w.Late.ForEachBucket {
			out.LateMs, out.LateCounts = append(out.LateMs, ms), append(out.LateCounts, n)
		}
	}
	return out
}

// PulsesOf reads what another node says.
func PulsesOf(list []*ddqv1.PeerPulse) map[string]*pulse.Report {
	if len(list) == 0 {
		return nil
	}
	reports := make(map[string]*pulse.Report, len(list))
	for _, p := range list {
		from := func(w *ddqv1.PeerPulseWindow) store.Millis { return store.Millis(w.GetFromUnixMs()) }
		r := pulse.ReportFrom(from(p.Minute), from(p.Hour))
		readWindow(&r.Minute, p.Minute)
		readWindow(&r.Hour, p.Hour)
		reports[p.Topic] = &r
	}
	return reports
}

func readWindow(w *pulse.Window, from *ddqv1.PeerPulseWindow) {
	if from == nil {
		return
	}
	w.Counts = [pulse.Events][]int64{
		pulse.Enqueued: from.Enqueued, pulse.Delivered: from.Delivered, pulse.Acked: from.Acked, pulse.Failed: from.Failed, pulse.Dead: from.Dead,
	}
	w.Latest, w.Max = from.LatestMs, from.MaxLateMs
	if len(from.LateMs) == 0 || len(from.LateMs) != len(from.LateCounts) {
		return
	}
	d := pulse.NewDistribution()
	for i, ms := range from.LateMs {
		d.Record(ms, from.LateCounts[i])
	}
	w.Late = &d
}
