package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// storyView is a task's story as JSON has it.
type storyView struct {
	Topic    string      `json:"topic"`
	ID       string      `json:"id"`
	State    string      `json:"state"` // gone, when it is
	Attempts int         `json:"attempts"`
	Events   []eventView `json:"events"`
	Gaps     []string    `json:"gaps,omitempty"`
	TraceID  string      `json:"trace_id,omitempty"` // of its producer
	TraceURL string      `json:"trace_url,omitempty"`
}

func (c taskCommands) trace() *cobra.Command {
	var topic string
	var traces traceURL
	var follow bool
	cmd := &cobra.Command{
		Use:   "trace ID",
		Short: "Tell what happened to a task",
		Long: `Tell a task's story: when it was enqueued, due, held and for whom, how late, how each attempt
ended and after what time. Where the topic keeps a log of changes (ddq topic set TOPIC
--watch-retention 1h) that is all of it, also of a task that is gone; else what the task
remembers, and what is not known is said. A task that was enqueued in a trace says which, and so do
attempts that a worker recorded; with --trace-url they are links.`,
		Example: "  ddq task trace 0192f0c4 --topic mail -f",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow && topic == "" {
				return session.Usagef("-f needs --topic")
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if err := traces.check(); err != nil {
					return err
				}
				t := tracer{cli: c.cli, client: s, topic: topic, id: args[0], story: story{traces: traces}}
				if follow {
					return t.follow(ctx)
				}
				return t.tell(ctx)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the task has ended, or SIGINT; the topic has to keep a log of changes")
	traces.flags(cmd.Flags())
	return cmd
}

// tracer tells the story of one task.
type tracer struct {
	*cli
	client *client.Client
	topic  string // empty: any
	id     string
	story  story
}

// tell prints what is known by now.
func (t *tracer) tell(ctx context.Context) error {
	err := t.look(ctx)
	gone := errors.Is(err, client.ErrNotFound) && t.topic != ""
	if err != nil && !gone {
		return err
	}
	events, logged, e := t.read(ctx)
	switch {
	case e != nil:
		return e
	case len(events) == 0 && gone:
		return err // nobody knows of it
	case len(events) == 0:
		events, logged = t.story.recalled(), false
	}
	v := storyView{Topic: t.topic, ID: t.id, State: "gone", Events: events, Gaps: t.story.gaps(logged)}
	if !gone {
		v.State = t.story.task.State.String()
	}
	if parts := strings.Split(t.story.task.Traceparent, "-"); len(parts) == 4 {
		v.TraceID = parts[1]
		v.TraceURL = t.story.traces.of(v.TraceID)
	}
	for i := range events {
		v.Attempts = max(v.Attempts, events[i].Attempt)
	}
	return t.show(v)
}

// look takes the task as it is.
func (t *tracer) look(ctx context.Context) error {
	task, err := t.client.Get(ctx, t.topic, t.id)
	if err == nil {
		t.story.task, t.topic = task, task.Topic
	}
	return err
}

// quiet is how many responses in a row without a change say that the log has no more of a task:
// the first says where the watch begins, the next comes after some seconds.
const quiet = 2

// read tells what the log has of the task; false when the topic keeps none. That it has no more is
// known when it has made the task what it was found to be, and else once it is quiet.
func (t *tracer) read(ctx context.Context) (all []eventView, logged bool, err error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	o, empty := t.log(), 0
	o.Progress = func([]byte) {
		if empty++; empty == quiet {
			cancel()
		}
	}
	for change, err := range t.client.Watch(within, o) {
		switch {
		case within.Err() != nil && ctx.Err() == nil:
			return all, true, nil
		case notWatched(err):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
		empty = quiet - 1
		all = append(all, t.story.take(&change)...)
		if t.story.isTold(&change) {
			break
		}
	}
	return all, true, ctx.Err()
}

func (t *tracer) log() client.WatchOptions {
	return client.WatchOptions{Topic: t.topic, IDs: []string{t.id}, FromOldest: true}
}

func notWatched(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Reason == "NOT_WATCHED"
}

// follow prints each event as it comes, until the task has ended.
func (t *tracer) follow(ctx context.Context) error {
	if err := t.look(ctx); err != nil && !errors.Is(err, client.ErrNotFound) {
		return err
	}
	for change, err := range t.client.Watch(ctx, t.log()) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if change.Outcome != client.AttemptRunning {
			_ = t.look(ctx) // for the error of the attempt; a task that is gone has none
		}
		for _, v := range t.story.take(&change) {
			if err := t.Say(v, "%s", v.line()); err != nil {
				return err
			}
		}
		if change.State == client.StateUnknown || change.State == client.StateDone || change.State == client.StateDead || change.State == client.StateExpired {
			return nil
		}
	}
	return nil
}

// show prints a whole story.
func (t *tracer) show(v storyView) error {
	times := "1 attempt"
	if v.Attempts != 1 {
		times = fmt.Sprintf("%d attempts", v.Attempts)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s/%s  %s after %s", v.Topic, terminal.Line(v.ID), v.State, times)
	if v.TraceID != "" {
		text.WriteString("  trace " + cmp.Or(v.TraceURL, v.TraceID))
	}
	for i := range v.Events {
		text.WriteString("\n" + v.Events[i].line())
	}
	for _, gap := range v.Gaps {
		text.WriteString("\nnot known: " + gap)
	}
	return t.Say(v, "%s", &text)
}
