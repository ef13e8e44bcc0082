package actors

import (
	"cmp"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// TopicBounds are the bounds of what a topic is told in numbers.
func (l *Limits) TopicBounds(t *store.Topic) []problem.Bound {
	return []problem.Bound{
		problem.Count("policy.max_retries", "max-retries", t.MaxRetries, 0, l.MaxRetries),
		problem.Span("policy.max_delay_ms", "max-delay", t.MaxDelay, 0, l.Delay),
		problem.Count("policy.max_payload_bytes", "max-payload", t.MaxPayload, 1, l.BatchBytes),
		problem.Span("policy.done_retention_ms", "done-retention", t.DoneRetention, 0, l.Delay),
		problem.Span("policy.dead_retention_ms", "dead-retention", t.DeadRetention, 0, l.Delay),
		problem.Count("policy.max_dead", "max-dead", t.MaxDead, 0, MaxTasks),
		problem.Count("policy.max_backlog", "max-backlog", t.MaxBacklog, 0, MaxTasks),
		problem.Span("policy.visibility_timeout_ms", "visibility-timeout", t.Visibility, l.MinVisibility, l.MaxVisibility),
	}
}

// BackoffBounds are the bounds of a backoff in numbers.
func BackoffBounds(b store.Backoff) []problem.Bound {
	return []problem.Bound{
		problem.Span("backoff.base_ms", "backoff base", b.Base, 0, cmp.Or(b.Max, agenda.DefaultBackoffMax)),
		problem.Count("backoff.jitter_percent", "backoff jitter", b.Jitter, 0, 100),
	}
}
