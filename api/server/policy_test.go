package server

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// TestPausedTopicIsResumedSlowly takes a ramp all the way: as it was asked for, as the
// topic shows it, and as a worker sees it.
func TestPausedTopicIsResumedSlowly(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("t", nil)(r))
		_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "t", Delivery: true})
		must(r, err)
		for range 20 {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		}
		resumed, err := r.admin.ResumeTopic(r.Context(), &ddqv1.ResumeTopicRequest{Name: "t", RampMs: 60_000})
		must(r, err)
		if got := resumed.Topic; got.RampMs != 60_000 || got.ResumedUnixMs == 0 || got.DeliveryPaused {
			r.Errorf("resumed %v", got)
		}
		// It could have ten, and has a sixtieth of that, which makes one, for each step.
		first, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 10, WaitMs: 1000})
		must(r, err)
		if n := len(first.Deliveries); n == 0 || n > 3 {
			r.Errorf("%d deliveries in the first second of a minute's ramp", n)
		}
		time.Sleep(time.Minute)
		rest, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 10, WaitMs: 1000})
		must(r, err)
		if len(rest.Deliveries) != 10 {
			r.Errorf("%d deliveries after the ramp, want 10", len(rest.Deliveries))
		}
		again, err := r.admin.ResumeTopic(r.Context(), &ddqv1.ResumeTopicRequest{Name: "t"})
		must(r, err)
		if again.Topic.RampMs != 0 || again.Topic.ResumedUnixMs != 0 {
			r.Errorf("a resume without a ramp leaves %v", again.Topic)
		}
	})
}

// TestTopicIsDescribedWithTheDefaults of the node, which are not those that the topic was created with.
func TestTopicIsDescribedWithTheDefaults(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("set", &ddqv1.TopicPolicy{MaxRetries: proto.Int32(7)})(r))
		must(r, created("plain", nil)(r))
		plain, err := r.admin.DescribeTopic(r.Context(), &ddqv1.DescribeTopicRequest{Name: "plain"})
		must(r, err)
		if !proto.Equal(plain.DefaultPolicy, plain.Topic.Policy) {
			r.Errorf("default policy %v of a topic that has %v", plain.DefaultPolicy, plain.Topic.Policy)
		}
		set, err := r.admin.DescribeTopic(r.Context(), &ddqv1.DescribeTopicRequest{Name: "set"})
		must(r, err)
		if !proto.Equal(set.DefaultPolicy, plain.DefaultPolicy) || set.Topic.Policy.GetMaxRetries() != 7 {
			r.Errorf("described %v, with the default policy %v", set, plain.DefaultPolicy)
		}
	})
}

// TestTopicIsConfiguredInTheVersionNamed is a change of two operators at once.
func TestTopicIsConfiguredInTheVersionNamed(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("t", nil)(r))
		got, err := r.admin.DescribeTopic(r.Context(), &ddqv1.DescribeTopicRequest{Name: "t"})
		must(r, err)
		change := &ddqv1.ConfigureTopicRequest{
			Name: "t", IfVersion: proto.Int64(got.Topic.Version),
			Policy: &ddqv1.TopicPolicy{MaxDead: proto.Int64(10)},
		}
		changed, err := r.admin.ConfigureTopic(r.Context(), change)
		must(r, err)
		if changed.Topic.Version != got.Topic.Version+1 || changed.Topic.Policy.GetMaxDead() != 10 {
			r.Errorf("changed to %v", changed.Topic)
		}
		if _, err := r.admin.ConfigureTopic(r.Context(), change); err == nil {
			r.Error("the version before was changed")
		}
	})
}
