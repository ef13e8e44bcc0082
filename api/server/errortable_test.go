package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

type refusal struct {
	name   string
	call   func(r *rig) error
	code   codes.Code
	reason string
	field  string
	state  string        // in the metadata
	retry  time.Duration // of RetryInfo
}

// enqueued makes a call of an EnqueueRequest for topic t.
func enqueued(edit func(*ddqv1.EnqueueRequest)) func(r *rig) error {
	return func(r *rig) error {
		req := &ddqv1.EnqueueRequest{Topic: "t"}
		edit(req)
		_, err := r.queue.Enqueue(r.Context(), req)
		return err
	}
}

func delayed(seconds int64, nanos int32) func(r *rig) error {
	return enqueued(func(e *ddqv1.EnqueueRequest) {
		e.When = &ddqv1.EnqueueRequest_Delay{Delay: &durationpb.Duration{Seconds: seconds, Nanos: nanos}}
	})
}

func executed(seconds int64, nanos int32) func(r *rig) error {
	return enqueued(func(e *ddqv1.EnqueueRequest) {
		e.When = &ddqv1.EnqueueRequest_ExecuteTime{ExecuteTime: &timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}}
	})
}

func batched(tasks ...*ddqv1.EnqueueRequest) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.queue.EnqueueBatch(r.Context(), &ddqv1.EnqueueBatchRequest{Tasks: tasks})
		return err
	}
}

func withKey(key *ddqv1.Idempotency) func(r *rig) error {
	return enqueued(func(e *ddqv1.EnqueueRequest) { e.Idempotency = key })
}

func resumed(rampMs int64) func(r *rig) error {
	return func(r *rig) error {
		must(r, created("t", nil)(r))
		_, err := r.admin.ResumeTopic(r.Context(), &ddqv1.ResumeTopicRequest{Name: "t", RampMs: rampMs})
		return err
	}
}

func created(name string, policy *ddqv1.TopicPolicy) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: name, Policy: policy})
		return err
	}
}

// during makes calls with the store failing.
func during(fault error, call func(r *rig) error) func(r *rig) error {
	return func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"}) // the topic exists
		r.store.fail(fault)
		return call(r)
	}
}

var simple = enqueued(func(*ddqv1.EnqueueRequest) {})

const hour = 3600

// refusals are the rows of the error table of the design, but for those of
// streams and the ones that are no errors.
var refusals = []refusal{
	// Missing or malformed names.
	{"no topic", enqueued(func(e *ddqv1.EnqueueRequest) { e.Topic = "" }), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"malformed topic", enqueued(func(e *ddqv1.EnqueueRequest) { e.Topic = "{a}:tasks" }), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"topic of bytes", enqueued(func(e *ddqv1.EnqueueRequest) { e.Topic = "a\xff" }), codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"long topic", enqueued(func(e *ddqv1.EnqueueRequest) { e.Topic = strings.Repeat("a", 129) }), codes.InvalidArgument, "NAME_TOO_LONG", "topic", "", 0},
	{"malformed id", enqueued(func(e *ddqv1.EnqueueRequest) { e.Id = "a b" }), codes.InvalidArgument, "BAD_ID", "id", "", 0},
	{"id of bytes", enqueued(func(e *ddqv1.EnqueueRequest) { e.Id = "\xff" }), codes.InvalidArgument, "BAD_ID", "id", "", 0},
	{"long id", enqueued(func(e *ddqv1.EnqueueRequest) { e.Id = strings.Repeat("a", 129) }), codes.InvalidArgument, "NAME_TOO_LONG", "id", "", 0},
	{"get without id", func(r *rig) error {
		_, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t"})
		return err
	}, codes.InvalidArgument, "BAD_ID", "id", "", 0},
	{"list without topic", func(r *rig) error {
		_, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{})
		return err
	}, codes.InvalidArgument, "BAD_NAME", "topic", "", 0},
	{"malformed topic name", created("a/b", nil), codes.InvalidArgument, "BAD_NAME", "name", "", 0},

	// Delays and times.
	{"negative delay", delayed(-1, 0), codes.InvalidArgument, "BAD_DELAY", "delay", "", 0},
	{"negative nanos", delayed(0, -1), codes.InvalidArgument, "BAD_DELAY", "delay", "", 0},
	{"nanos over a second", delayed(0, 1_000_000_000), codes.InvalidArgument, "BAD_DELAY", "delay", "", 0},
	{"overflowing delay", delayed(math.MaxInt64, 0), codes.InvalidArgument, "BAD_DELAY", "delay", "", 0},
	{"forgotten time", executed(0, 0), codes.InvalidArgument, "BAD_TIME", "execute_time", "", 0},
	{"time of bad nanos", executed(1, 1_000_000_000), codes.InvalidArgument, "BAD_TIME", "execute_time", "", 0},
	{"overflowing time", executed(math.MaxInt64, 0), codes.InvalidArgument, "BAD_TIME", "execute_time", "", 0},
	{"expires before it is due", enqueued(func(e *ddqv1.EnqueueRequest) {
		e.When = &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}
		e.Expiry = &ddqv1.EnqueueRequest_ExpireTime{ExpireTime: timestamppb.New(time.Now())}
	}), codes.InvalidArgument, "BAD_TIME", "expire_time", "", 0},
	{"reschedule without a time", func(r *rig) error {
		_, err := r.queue.RescheduleTask(r.Context(), &ddqv1.RescheduleTaskRequest{Topic: "t", Id: "a"})
		return err
	}, codes.InvalidArgument, "BAD_TIME", "when", "", 0},
	{"eleven years", delayed(11*366*24*hour, 0), codes.OutOfRange, "DELAY_TOO_LONG", "delay", "", 0},
	{"three hundred years", delayed(300*366*24*hour, 0), codes.OutOfRange, "DELAY_TOO_LONG", "delay", "", 0},
	{"the year 9999", executed(253_402_300_799, 0), codes.OutOfRange, "DELAY_TOO_LONG", "execute_time", "", 0},
	{"farther than the topic allows", func(r *rig) error {
		must(r, created("t", &ddqv1.TopicPolicy{MaxDelayMs: proto.Int64(1000)})(r))
		return delayed(1, 1)(r)
	}, codes.OutOfRange, "DELAY_TOO_LONG", "delay", "", 0},

	// Enums, numbers, pages.
	{"unknown backoff", enqueued(func(e *ddqv1.EnqueueRequest) { e.Backoff = &ddqv1.Backoff{Kind: 99} }), codes.InvalidArgument, "BAD_ENUM", "backoff.kind", "", 0},
	{"unknown state", func(r *rig) error {
		_, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", State: 99})
		return err
	}, codes.InvalidArgument, "BAD_ENUM", "state", "", 0},
	{"unknown dead reason", func(r *rig) error {
		_, err := r.admin.DeleteDeadLetters(r.Context(), &ddqv1.DeleteDeadLettersRequest{Topic: "t", Filter: &ddqv1.DeadLetterFilter{Reason: -1}})
		return err
	}, codes.InvalidArgument, "BAD_ENUM", "filter.reason", "", 0},
	{"filter of bytes", func(r *rig) error {
		_, err := r.admin.RequeueDeadLetters(r.Context(), &ddqv1.RequeueDeadLettersRequest{Topic: "t", Filter: &ddqv1.DeadLetterFilter{ErrorContains: "\xff"}})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "filter.error_contains", "", 0},
	{"negative filter time", func(r *rig) error {
		_, err := r.admin.ListDeadLetters(r.Context(), &ddqv1.ListDeadLettersRequest{Topic: "t", Filter: &ddqv1.DeadLetterFilter{DeadBeforeUnixMs: -1}})
		return err
	}, codes.InvalidArgument, "BAD_TIME", "filter.dead_before_unix_ms", "", 0},
	{"too many retries", enqueued(func(e *ddqv1.EnqueueRequest) { e.MaxRetries = proto.Int32(1001) }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_retries", "", 0},
	{"too high a priority", enqueued(func(e *ddqv1.EnqueueRequest) { e.Priority = 10 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "priority", "", 0},
	{"negative priority", enqueued(func(e *ddqv1.EnqueueRequest) { e.Priority = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "priority", "", 0},
	{"long fairness key", enqueued(func(e *ddqv1.EnqueueRequest) { e.FairnessKey = strings.Repeat("k", 129) }), codes.InvalidArgument, "NAME_TOO_LONG", "fairness_key", "", 0},
	{"heavy fairness key", enqueued(func(e *ddqv1.EnqueueRequest) { e.FairnessKey, e.FairnessWeight = "k", 1001 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "fairness_weight", "", 0},
	{"weight without a key", enqueued(func(e *ddqv1.EnqueueRequest) { e.FairnessWeight = 2 }), codes.InvalidArgument, "BAD_KEY", "fairness_weight", "", 0},
	{"long rate key", enqueued(func(e *ddqv1.EnqueueRequest) { e.RateKey = strings.Repeat("k", 129) }), codes.InvalidArgument, "NAME_TOO_LONG", "rate_key", "", 0},
	{"long concurrency key", enqueued(func(e *ddqv1.EnqueueRequest) { e.ConcurrencyKey = strings.Repeat("k", 129) }), codes.InvalidArgument, "NAME_TOO_LONG", "concurrency_key", "", 0},
	{"long ordering key", enqueued(func(e *ddqv1.EnqueueRequest) { e.OrderingKey = strings.Repeat("k", 129) }), codes.InvalidArgument, "NAME_TOO_LONG", "ordering_key", "", 0},
	{"ordering key and an id", enqueued(func(e *ddqv1.EnqueueRequest) { e.OrderingKey, e.Id = "k", "mine" }), codes.InvalidArgument, "BAD_ID", "ordering_key", "", 0},
	{"negative retries", enqueued(func(e *ddqv1.EnqueueRequest) { e.MaxRetries = proto.Int32(-1) }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_retries", "", 0},
	{"short visibility timeout", enqueued(func(e *ddqv1.EnqueueRequest) { e.VisibilityTimeoutMs = 999 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "visibility_timeout_ms", "", 0},
	{"overflowing visibility timeout", enqueued(func(e *ddqv1.EnqueueRequest) { e.VisibilityTimeoutMs = math.MaxInt64 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "visibility_timeout_ms", "", 0},
	{"negative handler timeout", enqueued(func(e *ddqv1.EnqueueRequest) { e.HandlerTimeoutMs = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "handler_timeout_ms", "", 0},
	{"long handler timeout", enqueued(func(e *ddqv1.EnqueueRequest) { e.HandlerTimeoutMs = 31_622_400_001 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "handler_timeout_ms", "", 0},
	{"bad page token", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		_, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", PageToken: "no such"})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"bad page token of topics", func(r *rig) error {
		_, err := r.admin.ListTopics(r.Context(), &ddqv1.ListTopicsRequest{PageToken: "no such"})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"page token of another listing", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "u"})
		topics, err := r.admin.ListTopics(r.Context(), &ddqv1.ListTopicsRequest{PageSize: 1})
		must(r, err)
		_, err = r.admin.ListShards(r.Context(), &ddqv1.ListShardsRequest{PageToken: topics.NextPageToken})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"page token of shards for topics", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		shards, err := r.admin.ListShards(r.Context(), &ddqv1.ListShardsRequest{PageSize: 1})
		must(r, err)
		_, err = r.admin.ListTopics(r.Context(), &ddqv1.ListTopicsRequest{PageToken: shards.NextPageToken})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"worker with a control character", func(r *rig) error {
		_, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", Worker: "a\x00"})
		return err
	}, codes.InvalidArgument, "BAD_NAME", "worker", "", 0},
	{"node with a control character", func(r *rig) error {
		stream, err := r.queue.Subscribe(r.Context())
		must(r, err)
		must(r, stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", Node: "../x\x01"}}))
		_, err = stream.Recv()
		return err
	}, codes.InvalidArgument, "BAD_NAME", "node", "", 0},
	{"negative page size", func(r *rig) error {
		_, err := r.admin.ListTopics(r.Context(), &ddqv1.ListTopicsRequest{PageSize: -1})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "page_size", "", 0},
	{"retrieve too many", func(r *rig) error {
		_, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 1001})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_tasks", "", 0},
	{"retrieve fewer than none", func(r *rig) error {
		_, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: -1})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_tasks", "", 0},
	{"retrieve waits too long", func(r *rig) error {
		_, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", WaitMs: 60_001})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "wait_ms", "", 0},
	{"worker of bytes", func(r *rig) error {
		_, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", Worker: "\xff"})
		return err
	}, codes.InvalidArgument, "BAD_NAME", "worker", "", 0},

	// Over a limit.
	{"large payload", enqueued(func(e *ddqv1.EnqueueRequest) { e.Payload = make([]byte, 1<<20+1) }), codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "payload", "", 0},
	{"over the frame limit", enqueued(func(e *ddqv1.EnqueueRequest) { e.Payload = make([]byte, 6<<20) }), codes.ResourceExhausted, "", "", "", 0},
	{"empty batch", batched(), codes.InvalidArgument, "BATCH_SIZE", "tasks", "", 0},
	{"large batch", batched(make1001()...), codes.InvalidArgument, "BATCH_SIZE", "tasks", "", 0},
	{"heavy batch", batched(
		&ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, 2<<20)},
		&ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, 2<<20+1)},
	), codes.InvalidArgument, "BATCH_SIZE", "tasks", "", 0},
	{"too many attributes", enqueued(func(e *ddqv1.EnqueueRequest) {
		for i := range 33 {
			e.Attributes = append(e.Attributes, &ddqv1.Attribute{Key: fmt.Sprint(i)})
		}
	}), codes.InvalidArgument, "BAD_ATTRIBUTES", "attributes", "", 0},
	{"large attribute", enqueued(func(e *ddqv1.EnqueueRequest) {
		e.Attributes = []*ddqv1.Attribute{{Key: "k", Value: strings.Repeat("v", 1025)}}
	}), codes.InvalidArgument, "BAD_ATTRIBUTES", "attributes", "", 0},
	{"attribute of bytes", enqueued(func(e *ddqv1.EnqueueRequest) {
		e.Attributes = []*ddqv1.Attribute{{Key: "k", Value: "\xff"}}
	}), codes.InvalidArgument, "BAD_ATTRIBUTES", "attributes", "", 0},
	{"short fingerprint of a payload", enqueued(func(e *ddqv1.EnqueueRequest) { e.PayloadFingerprint = make([]byte, 15) }), codes.InvalidArgument, "BAD_FINGERPRINT", "payload_fingerprint", "", 0},
	{"long fingerprint of a payload", enqueued(func(e *ddqv1.EnqueueRequest) { e.PayloadFingerprint = make([]byte, 33) }), codes.InvalidArgument, "BAD_FINGERPRINT", "payload_fingerprint", "", 0},
	{"another fingerprint under a live id", func(r *rig) error {
		of := func(b byte) *ddqv1.EnqueueRequest {
			return &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Payload: []byte("x"), PayloadFingerprint: bytes.Repeat([]byte{b}, 16), When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}}
		}
		r.enqueue(of(1))
		_, err := r.queue.Enqueue(r.Context(), of(2))
		return err
	}, codes.AlreadyExists, "ID_CONFLICT", "id", "scheduled", 0},

	// What is there, and what is not.
	{"another request under a live id", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}})
		_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Payload: []byte("other")})
		return err
	}, codes.AlreadyExists, "ID_CONFLICT", "id", "scheduled", 0},
	{"get of an unknown task", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		_, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		return err
	}, codes.NotFound, "NO_TASK", "id", "", 0},
	{"delete of an unknown task", func(r *rig) error {
		_, err := r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Id: "a"})
		return err
	}, codes.NotFound, "NO_TASK", "id", "", 0},
	{"reschedule of an unknown task", func(r *rig) error {
		_, err := r.queue.RescheduleTask(r.Context(), &ddqv1.RescheduleTaskRequest{Id: "a", When: &ddqv1.RescheduleTaskRequest_Delay{Delay: &durationpb.Duration{}}})
		return err
	}, codes.NotFound, "NO_TASK", "id", "", 0},
	{"get in an unknown topic", func(r *rig) error {
		_, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"configure an unknown topic", func(r *rig) error {
		_, err := r.admin.ConfigureTopic(r.Context(), &ddqv1.ConfigureTopicRequest{Name: "t"})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"the same id in two topics", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "u", Id: "a"})
		_, err := r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Id: "a"})
		return err
	}, codes.FailedPrecondition, "AMBIGUOUS_ID", "topic", "", 0},
	{"create a topic twice", func(r *rig) error {
		must(r, created("t", nil)(r))
		return created("t", nil)(r)
	}, codes.AlreadyExists, "TOPIC_EXISTS", "name", "", 0},
	{"delete a topic with tasks", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		_, err := r.admin.DeleteTopic(r.Context(), &ddqv1.DeleteTopicRequest{Name: "t"})
		return err
	}, codes.FailedPrecondition, "TOPIC_NOT_EMPTY", "name", "", 0},
	{"delete a topic with schedules", after(nil, func(r *rig) error {
		_, err := r.admin.DeleteTopic(r.Context(), &ddqv1.DeleteTopicRequest{Name: "report"})
		return err
	}), codes.FailedPrecondition, "TOPIC_NOT_EMPTY", "name", "", 0},
	{"too many shards", created("t", &ddqv1.TopicPolicy{Shards: proto.Int32(257)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.shards", "", 0},
	{"overflowing policy", created("t", &ddqv1.TopicPolicy{DoneRetentionMs: proto.Int64(math.MaxInt64)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.done_retention_ms", "", 0},
	{"negative slack", enqueued(func(e *ddqv1.EnqueueRequest) { e.Spread = &ddqv1.EnqueueRequest_Slack{Slack: durationpb.New(-1)} }), codes.InvalidArgument, "BAD_DELAY", "slack", "", 0},
	{"slack of a century", enqueued(func(e *ddqv1.EnqueueRequest) {
		e.Spread = &ddqv1.EnqueueRequest_Slack{Slack: &durationpb.Duration{Seconds: 100 * 366 * 86400}}
	}), codes.OutOfRange, "DELAY_TOO_LONG", "slack", "", 0},
	{"latest before the due time", enqueued(func(e *ddqv1.EnqueueRequest) {
		e.Spread = &ddqv1.EnqueueRequest_LatestTime{LatestTime: &timestamppb.Timestamp{Seconds: 1}}
	}), codes.InvalidArgument, "BAD_TIME", "latest_time", "", 0},
	{"an empty idempotency key", withKey(&ddqv1.Idempotency{}), codes.InvalidArgument, "BAD_KEY", "idempotency.key", "", 0},
	{"an unprintable idempotency key", withKey(&ddqv1.Idempotency{Key: "a\tb"}), codes.InvalidArgument, "BAD_KEY", "idempotency.key", "", 0},
	{"a window in the scope of the live", withKey(&ddqv1.Idempotency{Key: "k", Scope: 1, WindowMs: 5}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "idempotency.window_ms", "", 0},
	{"no window in the scope of windows", withKey(&ddqv1.Idempotency{Key: "k", Scope: 2}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "idempotency.window_ms", "", 0},
	{"a window of ten years", withKey(&ddqv1.Idempotency{Key: "k", WindowMs: 315_360_000_000}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "idempotency.window_ms", "", 0},
	{"a negative window", withKey(&ddqv1.Idempotency{Key: "k", WindowMs: -1}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "idempotency.window_ms", "", 0},
	{"an unknown scope", withKey(&ddqv1.Idempotency{Key: "k", Scope: 9}), codes.InvalidArgument, "BAD_ENUM", "idempotency.scope", "", 0},
	{"an unknown rule for conflicts", withKey(&ddqv1.Idempotency{Key: "k", OnConflict: 9}), codes.InvalidArgument, "BAD_ENUM", "idempotency.on_conflict", "", 0},
	{"an id and a key", enqueued(func(e *ddqv1.EnqueueRequest) { e.Id, e.Idempotency = "mine", &ddqv1.Idempotency{Key: "k"} }), codes.InvalidArgument, "BAD_ID", "id", "", 0},
	{"negative dead retention", created("t", &ddqv1.TopicPolicy{DeadRetentionMs: proto.Int64(-1)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.dead_retention_ms", "", 0},
	{"overflowing dead retention", created("t", &ddqv1.TopicPolicy{DeadRetentionMs: proto.Int64(math.MaxInt64)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.dead_retention_ms", "", 0},
	{"too large a cap of dead letters", created("t", &ddqv1.TopicPolicy{MaxDead: proto.Int64(1_000_000_001)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.max_dead", "", 0},
	{"negative backlog", created("t", &ddqv1.TopicPolicy{MaxBacklog: proto.Int64(-1)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.max_backlog", "", 0},
	{"too many indexed attributes", indexing("a", "b", "c", "d", "e"), codes.InvalidArgument, "BAD_ATTRIBUTES", "policy.indexed_attributes", "", 0},
	{"an indexed attribute twice", indexing("a", "b", "a"), codes.InvalidArgument, "BAD_ATTRIBUTES", "policy.indexed_attributes", "", 0},
	{"an indexed attribute without a name", indexing(""), codes.InvalidArgument, "BAD_ATTRIBUTES", "policy.indexed_attributes", "", 0},
	{"a long name of an indexed attribute", indexing(strings.Repeat("a", 65)), codes.InvalidArgument, "BAD_ATTRIBUTES", "policy.indexed_attributes", "", 0},
	{"backlog full", func(r *rig) error {
		must(r, created("t", &ddqv1.TopicPolicy{MaxBacklog: proto.Int64(1)})(r))
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		return simple(r)
	}, codes.ResourceExhausted, "BACKLOG_FULL", "topic", "", time.Second},
	{"another version", func(r *rig) error {
		must(r, created("t", nil)(r))
		_, err := r.admin.ConfigureTopic(r.Context(), &ddqv1.ConfigureTopicRequest{Name: "t", IfVersion: proto.Int64(7)})
		return err
	}, codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"a ramp of a day", resumed(24 * 3600 * 1000), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "ramp_ms", "", 0},
	{"a ramp backwards", resumed(-1), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "ramp_ms", "", 0},
	{"policy with an unknown backoff", created("t", &ddqv1.TopicPolicy{Backoff: &ddqv1.Backoff{}}), codes.InvalidArgument, "BAD_ENUM", "policy.backoff.kind", "", 0},
	{"pause nothing", func(r *rig) error {
		_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "t"})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "delivery", "", 0},

	// Not in this state.
	{"delete a running task", func(r *rig) error {
		r.hold("t", "a")
		_, err := r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Topic: "t", Id: "a"})
		return err
	}, codes.FailedPrecondition, "TASK_RUNNING", "id", "running", 0},
	{"reschedule a running task", func(r *rig) error {
		r.hold("t", "a")
		_, err := r.queue.RescheduleTask(r.Context(), &ddqv1.RescheduleTaskRequest{Id: "a", When: &ddqv1.RescheduleTaskRequest_Delay{Delay: &durationpb.Duration{}}})
		return err
	}, codes.FailedPrecondition, "TASK_RUNNING", "id", "running", 0},
	{"delete a finished task", func(r *rig) error {
		must(r, created("t", &ddqv1.TopicPolicy{DoneRetentionMs: proto.Int64(60_000)})(r))
		r.mustAck("t", r.hold("t", "a"))
		_, err := r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Topic: "t", Id: "a"})
		return err
	}, codes.FailedPrecondition, "TASK_FINISHED", "id", "done", 0},

	// Settling.
	{"ack under a stale token", func(r *rig) error {
		d := r.hold("t", "a")
		again := nackNow(r, d)
		if again.Task.RetryCount != 1 {
			r.Errorf("retry count is %d, want 1", again.Task.RetryCount)
		}
		_, err := r.ack("t", d)
		return err
	}, codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"extend under a stale token", func(r *rig) error {
		d := r.hold("t", "a")
		nackNow(r, d)
		_, err := r.queue.Extend(r.Context(), &ddqv1.ExtendRequest{Topic: "t", Extend: &ddqv1.Extend{TaskId: "a", HoldToken: d.HoldToken}})
		return err
	}, codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"nack after the ack", func(r *rig) error {
		d := r.hold("t", "a")
		r.mustAck("t", d)
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{TaskId: "a", HoldToken: d.HoldToken}})
		return err
	}, codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"ack with garbage", func(r *rig) error {
		d := r.hold("t", "a")
		d.HoldToken = []byte("garbage")
		_, err := r.ack("t", d)
		return err
	}, codes.InvalidArgument, "BAD_TOKEN", "hold_token", "", 0},
	{"ack of nothing", func(r *rig) error {
		_, err := r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "t"})
		return err
	}, codes.InvalidArgument, "BAD_ID", "task_id", "", 0},
	{"nack with a negative delay", func(r *rig) error {
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{TaskId: "a", DelayMs: proto.Int64(-1)}})
		return err
	}, codes.InvalidArgument, "BAD_DELAY", "delay_ms", "", 0},
	{"nack with an overflowing delay", func(r *rig) error {
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{TaskId: "a", DelayMs: proto.Int64(math.MaxInt64)}})
		return err
	}, codes.InvalidArgument, "BAD_DELAY", "delay_ms", "", 0},
	{"release for good", func(r *rig) error {
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{TaskId: "a", Release: true, Permanent: true}})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "release", "", 0},
	{"extend over the limit", func(r *rig) error {
		d := r.hold("t", "a")
		_, err := r.queue.Extend(r.Context(), &ddqv1.ExtendRequest{Topic: "t", Extend: &ddqv1.Extend{
			TaskId: "a", HoldToken: d.HoldToken, VisibilityTimeoutMs: 13 * hour * 1000}})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "visibility_timeout_ms", "", 0},

	// Not now.
	{"paused for enqueue", func(r *rig) error {
		must(r, created("t", nil)(r))
		_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "t", Enqueue: true})
		must(r, err)
		return simple(r)
	}, codes.ResourceExhausted, "ENQUEUE_PAUSED", "topic", "", 5 * time.Second},
	{"draining", func(r *rig) error {
		r.service.Node().Drain(r.Context())
		return simple(r)
	}, codes.Unavailable, "DRAINING", "", "", time.Second},
	{"store down at enqueue", during(store.ErrUnavailable, simple), codes.Unavailable, "STORE_DOWN", "", "", time.Second},
	{"store down at get", during(store.ErrUnavailable, func(r *rig) error {
		_, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		return err
	}), codes.Unavailable, "STORE_DOWN", "", "", time.Second},
	{"store down at ack", func(r *rig) error {
		d := r.hold("t", "a")
		r.store.fail(store.ErrUnavailable)
		_, err := r.ack("t", d)
		return err
	}, codes.Unavailable, "STORE_DOWN", "", "", time.Second},
	{"store full", during(store.ErrFull, simple), codes.Unavailable, "STORE_FULL", "", "", 5 * time.Second},
	{"outcome unknown", during(store.ErrUnknown, simple), codes.Unknown, "AMBIGUOUS", "", "", 0},
	{"topic changed meanwhile", during(store.ErrVersion, func(r *rig) error {
		_, err := r.admin.ResumeTopic(r.Context(), &ddqv1.ResumeTopicRequest{Name: "t"})
		return err
	}), codes.Unavailable, "VERSION_MISMATCH", "", "", time.Second},

	// The fleet.
	{"drain of a node that stands alone", func(r *rig) error {
		nodes, err := r.admin.ListNodes(r.Context(), &ddqv1.ListNodesRequest{})
		must(r, err)
		_, err = r.admin.DrainNode(r.Context(), &ddqv1.DrainNodeRequest{Name: nodes.Nodes[0].Name})
		return err
	}, codes.FailedPrecondition, "NO_FLEET", "name", "", 0},
	{"drain of an unknown node", func(r *rig) error {
		_, err := r.admin.DrainNode(r.Context(), &ddqv1.DrainNodeRequest{Name: "x"})
		return err
	}, codes.NotFound, "NO_NODE", "name", "", 0},
	{"undrain of an unknown node", func(r *rig) error {
		_, err := r.admin.UndrainNode(r.Context(), &ddqv1.UndrainNodeRequest{Name: "x"})
		return err
	}, codes.NotFound, "NO_NODE", "name", "", 0},
	{"records by an unknown outcome", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.Outcome = 99 }), codes.InvalidArgument, "BAD_ENUM", "outcome", "", 0},
	{"records of a range backwards", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.FromUnixMs, r.BeforeUnixMs = 9, 9 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "before_unix_ms", "", 0},
	{"records from before time", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.FromUnixMs = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "from_unix_ms", "", 0},
	{"records until no time", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.BeforeUnixMs = math.MaxInt64 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "before_unix_ms", "", 0},
	{"records of a caller without end", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.Caller = strings.Repeat("x", 1025) }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "caller", "", 0},
	{"less than no records", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.PageSize = -1 }), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "page_size", "", 0},
	{"records behind no token", listAudit(func(r *ddqv1.ListAuditRecordsRequest) { r.PageToken = "x" }), codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},
	{"log level of an unknown node", logging(func(*ddqv1.SetLogLevelRequest) {}, "x"), codes.NotFound, "NO_NODE", "name", "", 0},
	{"unknown log level", logging(func(r *ddqv1.SetLogLevelRequest) { r.Level = 9 }, ""), codes.InvalidArgument, "BAD_ENUM", "level", "", 0},
	{"log level for too long", logging(func(r *ddqv1.SetLogLevelRequest) { r.ForMs = 86_400_001 }, ""), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "for_ms", "", 0},
	{"log level for less than no time", logging(func(r *ddqv1.SetLogLevelRequest) { r.ForMs = math.MinInt64 }, ""), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "for_ms", "", 0},
	{"log level of an unknown topic", logging(func(r *ddqv1.SetLogLevelRequest) { r.Topic = "no" }, ""), codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"log level of a topic that is not debug", logging(func(r *ddqv1.SetLogLevelRequest) {
		r.Topic, r.Level = "t", ddqv1.LogLevel_LOG_LEVEL_WARN
	}, ""), codes.InvalidArgument, "BAD_LEVEL", "level", "", 0},
	{"plan without an unknown node", func(r *rig) error {
		_, err := r.admin.PlanRebalance(r.Context(), &ddqv1.PlanRebalanceRequest{Drain: []string{"x"}})
		return err
	}, codes.NotFound, "NO_NODE", "name", "", 0},
	{"release of a shard that is not there", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		_, err := r.admin.ReleaseShard(r.Context(), &ddqv1.ReleaseShardRequest{Topic: "t", Shard: 1000})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "shard", "", 0},
	{"reshard of an unknown topic", func(r *rig) error {
		_, err := r.admin.ReshardTopic(r.Context(), &ddqv1.ReshardTopicRequest{Name: "t", Shards: 8})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"reshard to no shards", func(r *rig) error {
		_, err := r.admin.ReshardTopic(r.Context(), &ddqv1.ReshardTopicRequest{Name: "t"})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "shards", "", 0},
	{"reshard while three generations have tasks", func(r *rig) (err error) {
		for shards := int32(5); err == nil && shards < 9; shards++ {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}})
			_, err = r.admin.ReshardTopic(r.Context(), &ddqv1.ReshardTopicRequest{Name: "t", Shards: shards})
		}
		return err
	}, codes.FailedPrecondition, "RESHARD_PENDING", "name", "", 0},
	{"bad page token of shards", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		_, err := r.admin.ListShards(r.Context(), &ddqv1.ListShardsRequest{Topic: "t", PageToken: "no such"})
		return err
	}, codes.InvalidArgument, "BAD_CURSOR", "page_token", "", 0},

	// The caller's clock, and bugs.
	{"deadline", func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		defer r.store.stop()()
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		_, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "t"})
		return status.Error(status.Code(err), "") // client and server notice at the same instant: the details are those of either
	}, codes.DeadlineExceeded, "", "", "", 0},
	{"an error nobody expects", during(errors.New("dial redis://secret"), simple), codes.Internal, "INTERNAL", "", "", 0},
	{"a panic", during(errPanic, func(r *rig) error {
		_, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		return err
	}), codes.Internal, "INTERNAL", "", "", 0},
}

func must(r *rig, err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func make1001() []*ddqv1.EnqueueRequest {
	tasks := make([]*ddqv1.EnqueueRequest, 1001)
	for i := range tasks {
		tasks[i] = &ddqv1.EnqueueRequest{Topic: "t"}
	}
	return tasks
}

// nackNow fails a delivery and returns the next one of the task.
func nackNow(r *rig, d *ddqv1.Delivery) *ddqv1.Delivery {
	r.Helper()
	resp, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{
		TaskId: d.Task.Id, HoldToken: d.HoldToken, DelayMs: proto.Int64(0),
	}})
	must(r, err)
	if resp.ExecuteTime == nil {
		r.Fatalf("no next attempt: %v", resp)
	}
	return r.retrieve("t")
}

func TestEveryRefusalHasItsCodeAndDetails(t *testing.T) { testRefusals(t, refusals) }

func testRefusals(t *testing.T, refusals []refusal) {
	for _, c := range refusals {
		t.Run(c.name, c.check)
	}
}

// check makes the call and compares its answer.
func (c refusal) check(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		err := c.call(r)
		if err == nil {
			r.Fatal("accepted")
		}
		got := statustest.Look(r.T, err)
		if got.Code != c.code || got.Reason != c.reason || got.Field != c.field || got.Metadata["state"] != c.state || got.Retry != c.retry {
			r.Errorf("got  %+v\nwant %+v", got, c)
		}
		if strings.Contains(got.Message, "secret") {
			r.Errorf("internals leak: %s", got.Message)
		}
	})
}

// The same reasons reach the items of a batch, and the others are stored.
func TestItemsOfABatchFailAlone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "live", Payload: []byte("first"), When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}})
		resp, err := r.queue.EnqueueBatch(r.Context(), &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{
			{Topic: "t", Id: "a"},
			{Topic: "t", Id: "b", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(-time.Second)}},
			{Topic: "a b", Id: "c"},
			{Topic: "t", Id: "live"},
			{Topic: "u", Id: "e"},
		}})
		must(r, err)
		want := []struct {
			code   codes.Code
			reason string
			field  string
		}{{}, {codes.InvalidArgument, "BAD_DELAY", "delay"}, {codes.InvalidArgument, "BAD_NAME", "topic"}, {codes.AlreadyExists, "ID_CONFLICT", "id"}, {}}
		for i, w := range want {
			e := resp.Results[i].Error
			if codes.Code(e.GetCode()) != w.code || e.GetReason() != w.reason || e.GetField() != w.field {
				r.Errorf("item %d: got %v, want %v", i, e, w)
			}
		}
		for _, place := range [][2]string{{"t", "a"}, {"u", "e"}} {
			if _, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: place[0], Id: place[1]}); err != nil {
				r.Errorf("%v: %v", place, err)
			}
		}
	})
}

// The rows of the table that are no errors.
func TestRepeatsAreAnsweredOK(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		req := &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Payload: []byte("x")}
		first := r.enqueue(req)
		again := r.enqueue(req)
		if first.Deduplicated || !again.Deduplicated || !proto.Equal(first.ExecuteTime, again.ExecuteTime) {
			r.Errorf("first %v, again %v", first, again)
		}
		d := r.retrieve("t")
		r.mustAck("t", d)
		resp, err := r.ack("t", d)
		if err != nil || !resp.Already {
			r.Errorf("the same ack again: %v, %v", resp, err)
		}
	})
}

// indexing creates a topic that indexes attributes.
func indexing(names ...string) func(*rig) error {
	return created("t", &ddqv1.TopicPolicy{IndexedAttributes: &ddqv1.IndexedAttributes{Names: names}})
}
