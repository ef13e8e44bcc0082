package metrics

import "github.com/prometheus/client_golang/prometheus"

// AckMetrics are about tasks that acks enqueue.
type AckMetrics struct {
	inShard, byParcel prometheus.Counter
	Undeliverable     prometheus.Counter
}

func newAckMetrics(f factory) AckMetrics {
	enqueued := f.counters("ddq_ack_enqueued_total", "Tasks that acks enqueued, by way: in the shard of the ack, or by parcel to another one.", "way")
	return AckMetrics{
		inShard: enqueued.WithLabelValues("shard"), byParcel: enqueued.WithLabelValues("parcel"),
		Undeliverable: f.counter("ddq_ack_undeliverable_total", "Tasks that acks enqueued and that their topic refused for good; they are among the dead letters of the ack's topic."),
	}
}

// CountAckEnqueued counts tasks that acks enqueued.
func (m *AckMetrics) CountAckEnqueued(inShard, byParcel int) {
	m.inShard.Add(float64(inShard))
	m.byParcel.Add(float64(byParcel))
}
