package loglevel

import (
	"context"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// Tasks writes the lines of tasks of a node.
type Tasks struct {
	*Levels
	node string
	now  func() store.Millis
}

// Tasks returns what writes the lines of the tasks of a node. now is the clock of their due times.
func (l *Levels) Tasks(node string, now func() store.Millis) *Tasks { return &Tasks{l, node, now} }

// line is what happened to a task. What is not known of it is zero, and left out.
type line struct {
	message string
	task    string
	attempt int
	worker  string
	due     store.Millis
	reached store.Millis // the moment by which it is late
	outcome string
}

// write writes a line, whatever the level of the node is.
func (t *Tasks) write(ctx context.Context, at store.Shard, l line) {
	r := slog.NewRecord(time.Now(), slog.LevelDebug, l.message, 0)
	r.AddAttrs(slog.String("topic", at.Topic), slog.Int("shard", at.N), slog.String("task", l.task), slog.String("node", t.node))
	if l.attempt != 0 {
		r.AddAttrs(slog.Int("attempt", l.attempt))
	}
	if l.worker != "" {
		r.AddAttrs(slog.String("worker", l.worker))
	}
	if l.due != 0 {
		r.AddAttrs(slog.Time("due", l.due.Time()))
	}
	if l.reached != 0 {
		r.AddAttrs(slog.Duration("late", max(0, l.reached.Sub(l.due))))
	}
	if l.outcome != "" {
		r.AddAttrs(slog.String("outcome", l.outcome))
	}
	_ = t.configured.Handle(ctx, r) //nolint:errcheck // there is nowhere to tell it
}

// Sent writes lines of a batch that goes to a worker at a moment.
func (t *Tasks) Sent(at store.Shard, worker string, now store.Millis, tasks []subscription.HeldTask) {
	ctx := context.Background()
	if !t.ofTasks(ctx, at.Topic) {
		return
	}
	for _, h := range tasks {
		t.write(ctx, at, line{message: "task sent", task: h.Task.ID, attempt: h.Task.Attempt, worker: worker, due: h.Task.Due, reached: now})
	}
}

// outcomes are the words for how holds end.
var outcomes = [...]string{
	store.OutcomeNone:        "",
	store.OutcomeAcked:       "acked",
	store.OutcomeFailed:      "failed",
	store.OutcomeReleased:    "released",
	store.OutcomeHoldExpired: "hold expired",
	store.OutcomeCancelled:   "cancelled",
}

func outcomeOf(o store.Outcome) string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return ""
}
