package cli

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// changeKinds are those that --kind names.
var changeKinds = []client.ChangeKind{
	client.ChangeEnqueued, client.ChangeUpdated, client.ChangeHeld, client.ChangeReleased, client.ChangeRetrying,
	client.ChangeDone, client.ChangeDead, client.ChangeDeleted, client.ChangeRequeued, client.ChangeCancelRequested,
}

// watchFlags are those of ddq watch.
type watchFlags struct {
	topic, from, cursor string
	ids, kinds          []string
	limit               int
	attributes          map[string]string
}

func watchCommand(c *cli) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch --topic TOPIC",
		Short: "Show what happens to the tasks of a topic",
		Long: `Show what happens to the tasks of a topic, in order for each task, until SIGINT. The
topic has to keep what happens for a while: ddq topic set TOPIC --watch-retention 1h.
A watch that goes on behind a --cursor misses and repeats nothing that the topic still
keeps; in JSON every line has the cursor behind it, and the last one is on stderr.`,
		Example: "  ddq watch --topic mail --kind dead,retrying\n  ddq watch --topic mail --from oldest -o json",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error { return watch(ctx, c, s, o, f.limit) })
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.topic, "topic", "", "topic of the tasks (required)")
	fs.StringSliceVar(&f.ids, "id", nil, "only these tasks, at most 100")
	fs.StringSliceVar(&f.kinds, "kind", nil, "only what is "+session.Words(changeKinds))
	fs.StringToStringVar(&f.attributes, "attr", nil, "only tasks with this attribute, which the topic has to index: --attr tenant=acme")
	fs.StringVar(&f.from, "from", "now", "where to begin without a cursor: now, or oldest for all that is kept")
	fs.StringVar(&f.cursor, "cursor", "", "go on behind this one")
	fs.IntVar(&f.limit, "limit", 0, "end after so many changes; 0 is never")
	return cmd
}

func (f *watchFlags) options() (o client.WatchOptions, err error) {
	o = client.WatchOptions{Topic: f.topic, IDs: f.ids, FromOldest: f.from == "oldest", Attributes: f.attributes}
	switch {
	case f.topic == "":
		return o, session.Usagef("--topic is required")
	case f.from != "now" && f.from != "oldest":
		return o, session.Usagef("--from is now or oldest, not %q", f.from)
	case f.limit < 0:
		return o, session.Usagef("--limit must not be negative")
	case f.cursor != "" && o.FromOldest:
		return o, session.Usagef("--from oldest and --cursor exclude each other")
	}
	if f.cursor != "" {
		if o.Cursor, err = base64.RawURLEncoding.DecodeString(f.cursor); err != nil {
			return o, session.Usagef("--cursor is not one that ddq watch has shown")
		}
	}
	for _, name := range f.kinds {
		kind, err := session.OneOf("kind", name, changeKinds)
		if err != nil {
			return o, err
		}
		o.Kinds = append(o.Kinds, kind)
	}
	return o, nil
}

// changeView is a change as it is printed.
type changeView struct {
	Time        string `json:"time"`
	Change      string `json:"change"`
	ID          string `json:"id"`
	State       string `json:"state,omitempty"`
	Attempt     int    `json:"attempt,omitempty"`
	ExecuteTime string `json:"execute_time,omitempty"`
	Version     int64  `json:"version,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Outcome     string `json:"outcome,omitempty"`
	Worker      string `json:"worker,omitempty"`
	Shard       int    `json:"shard"`
	Position    int64  `json:"position"`

	Attributes map[string]string `json:"attributes,omitempty"`

	Cursor string `json:"cursor"`
}

func viewChange(t client.TaskChange) changeView {
	v := changeView{
		Time: terminal.Clock(t.Time), Change: t.Kind.String(), ID: t.ID, Attempt: t.Attempt, ExecuteTime: terminal.Clock(t.Due), Version: t.Version,
		Reason: t.Reason.String(), Worker: t.Worker, Shard: t.Shard, Position: t.Position, Attributes: t.Attributes, Cursor: base64.RawURLEncoding.EncodeToString(t.Cursor()),
	}
	if t.State != client.StateUnknown {
		v.State = t.State.String()
	}
	if t.Outcome != client.AttemptRunning {
		v.Outcome = t.Outcome.String()
	}
	return v
}

// line is the change for people.
func (v changeView) line() string {
	line := fmt.Sprintf("%s  %-16s  %s", v.Time, v.Change, v.ID)
	for _, part := range [...]struct{ name, value string }{
		{"attempt", fmt.Sprint(v.Attempt)}, {"due", v.ExecuteTime}, {"reason", v.Reason}, {"outcome", v.Outcome}, {"worker", v.Worker},
	} {
		if part.value != "" && part.value != "0" {
			line += "  " + part.name + "=" + part.value
		}
	}
	for _, key := range terminal.SortedKeys(v.Attributes) {
		line += "  " + key + "=" + v.Attributes[key]
	}
	return line
}

// watch prints changes until ctx ends, which is no error, or limit have been.
func watch(ctx context.Context, c *cli, s *client.Client, o client.WatchOptions, limit int) error {
	var cursor []byte // behind what was heard of: a refused one is not worth repeating
	o.Progress = func(behind []byte) { cursor = behind }
	n := 0
	err := func() error {
		for change, err := range s.Watch(ctx, o) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			v := viewChange(change)
			if err := c.Say(v, "%s", v.line()); err != nil {
				return err
			}
			cursor = change.Cursor()
			if n++; n == limit {
				return nil
			}
		}
		return nil
	}()
	if cursor != nil {
		fmt.Fprintf(c.Err, "go on with --cursor %s\n", base64.RawURLEncoding.EncodeToString(cursor))
	}
	return err
}
