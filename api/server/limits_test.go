package server

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

// limited creates topic t with a policy.
func (r *rig) limited(p *ddqv1.TopicPolicy) *ddqv1.TopicPolicy {
	r.Helper()
	created, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: "t", Policy: p})
	if err != nil {
		r.Fatalf("create topic: %v", err)
	}
	return created.Topic.Policy
}

func (r *rig) get(id string) *ddqv1.Task {
	r.Helper()
	found, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: id})
	if err != nil {
		r.Fatalf("get %s: %v", id, err)
	}
	return found.Task
}

// A task that is over a rate waits, says until when, and comes then.
func TestTaskOverARateWaitsForItsToken(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.limited(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Count: 1, PeriodMs: 30_000}})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "b"})
		second := map[string]string{"a": "b", "b": "a"}[r.retrieve("t").Task.Id] // they are of two shards
		began := time.Now()
		task := r.get(second)
		if next := task.NextTokenTime.AsTime().Sub(began); task.WaitingFor != ddqv1.WaitingFor_WAITING_FOR_RATE || next < 29*time.Second || next > 30*time.Second {
			r.Errorf("waiting for %v until %v from now, want the rate, for half a minute", task.WaitingFor, next)
		}
		got := r.retrieve("t")
		if waited := time.Since(began); got.Task.Id != second || got.Task.RetryCount != 0 || waited < 29*time.Second || waited > 31*time.Second {
			r.Errorf("%s came after %v at retry %d, want %s after half a minute, with no attempt spent", got.Task.Id, waited, got.Task.RetryCount, second)
		}
	})
}

func TestTaskOverACapWaitsForAPermit(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		one := int32(1)
		r.limited(&ddqv1.TopicPolicy{KeyConcurrency: &one})
		for _, id := range []string{"a", "b"} {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: id, ConcurrencyKey: "k"})
		}
		held := r.retrieve("t")
		other := map[string]string{"a": "b", "b": "a"}[held.Task.Id]
		if held.Task.ConcurrencyKey != "k" || r.get(other).WaitingFor != ddqv1.WaitingFor_WAITING_FOR_CONCURRENCY {
			r.Errorf("%v is held, and the other waits for %v", held.Task, r.get(other).WaitingFor)
		}
		listed, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", Filter: &ddqv1.TaskFilter{IdPrefix: other}})
		if err != nil || len(listed.Tasks) != 1 || listed.Tasks[0].WaitingFor != ddqv1.WaitingFor_WAITING_FOR_CONCURRENCY {
			r.Errorf("a filter finds %v, %v", listed, err)
		}
		none, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 1, WaitMs: 5000})
		if err != nil || len(none.Deliveries) != 0 {
			r.Fatalf("%d tasks beside the one that is held, %v", len(none.Deliveries), err)
		}
		r.mustAck("t", held)
		if got := r.retrieve("t"); got.Task.Id != other {
			r.Errorf("got %s, want %s", got.Task.Id, other)
		}
	})
}

// Deliveries and handlers share a bucket.
func TestAcquireTokensSharesTheRate(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		policy := r.limited(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Count: 1, PeriodMs: 10_000, Burst: 3}})
		if policy.Rate.Burst != 3 || policy.OverLimit != ddqv1.OverLimit_OVER_LIMIT_WAIT {
			r.Errorf("policy of the new topic: %v", policy)
		}
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "one"})
		r.retrieve("t")
		ask := func(n int32, wait int64) *ddqv1.AcquireTokensResponse {
			got, err := r.queue.AcquireTokens(r.Context(), &ddqv1.AcquireTokensRequest{Topic: "t", Tokens: n, MaxWaitMs: wait})
			if err != nil {
				r.Fatal(err)
			}
			return got
		}
		if got := ask(2, 0); !got.Granted || got.WaitMs != 0 {
			r.Errorf("two of the three at once: %v", got)
		}
		if got := ask(1, 0); got.Granted || got.WaitMs < 9000 || got.WaitMs > 10_000 {
			r.Errorf("a fourth: %v, want it in ten seconds", got)
		}
		if got := ask(1, 20_000); !got.Granted || got.WaitMs < 9000 || got.WaitMs > 10_000 {
			r.Errorf("a fourth that may wait: %v, want it in ten seconds", got)
		}
	})
}

func policed(p *ddqv1.TopicPolicy) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: "new", Policy: p})
		return err
	}
}

func tokens(ask *ddqv1.AcquireTokensRequest) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.admin.ConfigureTopic(r.Context(), &ddqv1.ConfigureTopicRequest{Name: "t", Policy: &ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Count: 5, PeriodMs: 1000, Burst: 2}}})
		if err == nil {
			_, err = r.queue.AcquireTokens(r.Context(), ask)
		}
		return err
	}
}

func TestBadLimitsNameTheirField(t *testing.T) {
	negative, large := int32(-1), int32(100_001)
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		for _, c := range []refusal{
			{"negative count", policed(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Count: -1, PeriodMs: 1}}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.rate.count", "", 0},
			{"no period", policed(&ddqv1.TopicPolicy{KeyRate: &ddqv1.RateLimit{Count: 1}}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.key_rate.period_ms", "", 0},
			{"long period", policed(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Count: 1, PeriodMs: 86_400_001}}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.rate.period_ms", "", 0},
			{"burst of a window", policed(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Kind: 2, Count: 1, PeriodMs: 1, Burst: 1}}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.rate.burst", "", 0},
			{"large burst", policed(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Count: 1, PeriodMs: 1, Burst: large}}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.rate.burst", "", 0},
			{"unknown kind", policed(&ddqv1.TopicPolicy{Rate: &ddqv1.RateLimit{Kind: 9, Count: 1, PeriodMs: 1}}), codes.InvalidArgument, "BAD_ENUM", "policy.rate.kind", "", 0},
			{"unknown over limit", policed(&ddqv1.TopicPolicy{OverLimit: 9}), codes.InvalidArgument, "BAD_ENUM", "policy.over_limit", "", 0},
			{"negative cap", policed(&ddqv1.TopicPolicy{Concurrency: &negative}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.concurrency", "", 0},
			{"large cap", policed(&ddqv1.TopicPolicy{KeyConcurrency: &large}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.key_concurrency", "", 0},
			{"more tokens than there can be", tokens(&ddqv1.AcquireTokensRequest{Topic: "t", Tokens: 3}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "tokens", "", 0},
			{"long wait for tokens", tokens(&ddqv1.AcquireTokensRequest{Topic: "t", MaxWaitMs: 60_001}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_wait_ms", "", 0},
			{"tokens of no rate", tokens(&ddqv1.AcquireTokensRequest{Topic: "t", Key: "k"}), codes.FailedPrecondition, "NO_RATE", "", "", 0},
			{"tokens of no topic", tokens(&ddqv1.AcquireTokensRequest{Topic: "none"}), codes.NotFound, "NO_TOPIC", "", "", 0},
		} {
			got := statustest.Look(r.T, c.call(r))
			if got.Code != c.code || got.Reason != c.reason || c.field != "" && got.Field != c.field {
				r.Errorf("%s: got %+v, want %+v", c.name, got, c)
			}
		}
	})
}
