package workflows

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/cli/workflowfile"
	"github.com/ddq-io/ddq/cmd/node"
)

// commands are those of ddq workflow.
type commands struct{ *session.Session }

// Command is ddq workflow.
func Command(parent *session.Session) *cobra.Command {
	c := commands{parent}
	return session.Group("workflow", "Steps that belong together: submit them, and see how they go on",
		c.submit(), c.list(), c.get(), c.steps(), c.results(), c.watch(), c.cancel(), c.pause(), c.resume(), c.retry(), c.skip(), c.signal(), c.delete())
}

const anyTopic = "topic of the workflow (default: look in every topic)"

func (c commands) submit() *cobra.Command {
	var file, topic, id, input string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "submit -f FILE",
		Short:   "Submit a workflow from a file in YAML; the same again changes nothing",
		Example: "  ddq workflow submit -f order.yaml --id order-17 --wait 1m",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := c.read(file)
			if err != nil {
				return err
			}
			w, err := workflowfile.Read(text)
			if err != nil {
				return session.Usagef("%s: %v", file, err)
			}
			w.Topic, w.Id = cmp.Or(topic, w.Topic), cmp.Or(id, w.Id)
			if cmd.Flags().Changed("input") {
				w.Input = []byte(input)
			}
			return c.Call(cmd, func(ctx context.Context, to *client.Client) error {
				done, err := to.SubmitWire(ctx, w.Workflow)
				if err != nil {
					return w.Refused(err)
				}
				if wait > 0 {
					s, err := to.WaitWorkflow(context.WithoutCancel(ctx), done.Topic, done.ID, wait)
					if err != nil {
						return err
					}
					return c.show(s)
				}
				note := ""
				if done.Deduplicated {
					note = ", submitted before"
				}
				return c.Say(done, "workflow %s of topic %s is %s%s", done.ID, done.Topic, done.State, note)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&file, "file", "f", "", "file of the workflow; - is stdin (required)")
	fs.StringVar(&topic, "topic", "", "in place of the file's")
	fs.StringVar(&id, "id", "", "in place of the file's")
	fs.StringVar(&input, "input", "", "in place of the file's")
	node.DurationVar(fs, &wait, "wait", 0, "how long to wait for its end (default not at all)")
	_ = cmd.MarkFlagRequired("file") // it is there
	return cmd
}

func (c commands) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.In)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, session.Usagef("--file: %v", err)
	}
	return text, nil
}

// counts say how many steps are in which state.
func counts(n client.StepCounts) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{n.Done, "done"}, {n.Made, "made"}, {n.Waiting, "waiting"}, {n.Failed, "failed"}, {n.Skipped, "skipped"}, {n.Cancelled, "cancelled"}, {n.Undone, "undone"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

func (c commands) show(s client.WorkflowStatus) error {
	rows := []table.Row{{"id", s.ID}, {"topic", s.Topic}, {"state", s.State}, {"steps", counts(s.StepCounts)}, {"created", terminal.Clock(s.CreatedAt)}}
	for _, r := range []struct{ name, value string }{
		{"name", s.Name}, {"cause", s.Cause}, {"failed step", s.FailedStep}, {"error", s.Error}, {"paused by", s.PausedBy}, {"note", s.Note},
		{"ended", terminal.Clock(s.EndedAt)}, {"times out", terminal.Clock(s.TimesOutAt)}, {"not undone", strings.Join(s.UndoFailed, ", ")},
	} {
		if r.value != "" {
			rows = append(rows, table.Row{r.name, r.value})
		}
	}
	if len(s.Result) > 0 {
		rows = append(rows, table.Row{"result", terminal.Shorten(terminal.BytesText(s.Result), 200)})
	}
	return c.Record(s, rows...)
}

func (c commands) list() *cobra.Command {
	var f client.WorkflowFilter
	var state string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List workflows",
		Example: "  ddq workflow list --topic orders --state failed",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.State, err = parse(state, client.WorkflowRunning, client.WorkflowCancelled); err != nil {
				return err
			}
			out := c.Listing("topic", "id", "name", "state", "steps", "created")
			err = c.Call(cmd, func(ctx context.Context, from *client.Client) error {
				return terminal.Each(from.ListWorkflows(ctx, f), limit, func(s client.WorkflowStatus) error {
					return out.Add(s, s.Topic, s.ID, s.Name, s.State, counts(s.StepCounts), terminal.Clock(s.CreatedAt))
				})
			})
			return out.End(err, "No workflows.")
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Topic, "topic", "", "only those of this topic")
	fs.StringVar(&state, "state", "", "only those in this state: running, paused, failing, cancelling, undoing, done, failed, cancelled")
	fs.StringVar(&f.Name, "name", "", "only those of this name")
	fs.StringToStringVar(&f.Labels, "label", nil, "only those with this label: --label team=data")
	fs.IntVar(&limit, "limit", 100, "most workflows to list; 0 is all")
	return cmd
}

// parse finds the state of a word; the zero state for none.
func parse[S interface {
	~int32
	String() string
}](word string, first, last S) (S, error) {
	var words []string
	for s := first; s <= last; s++ {
		if s.String() == word {
			return s, nil
		}
		words = append(words, s.String())
	}
	if word == "" {
		return 0, nil
	}
	return 0, session.Usagef("--state is one of %s, not %q", strings.Join(words, ", "), word)
}

// getView is a workflow with its steps.
type getView struct {
	Workflow client.WorkflowStatus `json:"workflow"`
	Steps    []client.StepStatus   `json:"steps"`
}

func (c commands) get() *cobra.Command {
	var topic string
	var graph, dot bool
	cmd := &cobra.Command{
		Use:     "get ID",
		Short:   "Show a workflow and its steps",
		Example: "  ddq workflow get order-17 --graph\n  ddq workflow get order-17 --dot | dot -Tsvg > order.svg",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, from *client.Client) error {
				s, steps, err := from.GetWorkflow(ctx, topic, args[0])
				if err == nil && (graph || dot) {
					steps, err = wholeOf(ctx, from, &s, steps)
				}
				switch {
				case err != nil:
					return err
				case dot:
					return writeDot(c.Out, s.ID, steps)
				case c.Output == terminal.FormatJSON:
					return c.WriteJSON(getView{s, steps})
				}
				if err := c.show(s); err != nil || !graph {
					return err
				}
				return writeLayers(c.Out, steps)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	cmd.Flags().BoolVar(&graph, "graph", false, "and its steps in layers: what can be done side by side in one line")
	cmd.Flags().BoolVar(&dot, "dot", false, "the graph of its steps for Graphviz")
	return cmd
}

// wholeOf returns all steps of a workflow, of which GetWorkflow returned the first.
func wholeOf(ctx context.Context, from *client.Client, s *client.WorkflowStatus, first []client.StepStatus) (all []client.StepStatus, err error) {
	if len(first) < shownByGet {
		return first, nil
	}
	for step, err := range from.ListSteps(ctx, s.Topic, s.ID, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, step)
	}
	return all, nil
}

// shownByGet is how many steps GetWorkflow returns at most.
const shownByGet = 1000

// why says what a step waits for, or what became of it.
func why(s *client.StepStatus) string {
	switch {
	case s.State == client.StepWaiting:
		return "waits for " + strings.Join(s.After, ", ")
	case s.Signal != "" && s.State == client.StepMade:
		return "waits for signal " + s.Signal
	case s.Error != "":
		return terminal.Shorten(s.Error, 60)
	case s.BecauseOf != "":
		return s.Reason + ": " + s.BecauseOf
	}
	return s.Reason
}

func (c commands) steps() *cobra.Command {
	var topic, state string
	cmd := &cobra.Command{
		Use:   "steps ID",
		Short: "List the steps of a workflow",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			of, err := parse(state, client.StepWaiting, client.StepUndoFailed)
			if err != nil {
				return err
			}
			out := c.Listing("step", "copy", "state", "try", "ended", "why")
			err = c.Call(cmd, func(ctx context.Context, from *client.Client) error {
				return terminal.Each(from.ListSteps(ctx, topic, args[0], of), 0, func(s client.StepStatus) error {
					return out.Add(s, s.Name, number(s.Copy), s.State, number(s.Try), terminal.Clock(s.EndedAt), why(&s))
				})
			})
			return out.End(err, "No steps.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	cmd.Flags().StringVar(&state, "state", "", "only those in this state: waiting, made, done, failed, cancelled, skipped, undoing, undone, undo_failed")
	return cmd
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (c commands) results() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "results ID STEP",
		Short: "Show what a step returned, or each of its copies",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := c.Listing("step", "copy", "state", "result")
			err := c.Call(cmd, func(ctx context.Context, from *client.Client) error {
				return terminal.Each(from.StepResults(ctx, topic, args[0], args[1]), 0, func(r client.StepResult) error {
					return out.Add(r, r.Step, number(r.Copy), r.State, terminal.BytesText(r.Result))
				})
			})
			return out.End(err, "No results.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	return cmd
}

func (c commands) watch() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Follow a workflow until its end: a line for each change of a step",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := c.Connect()
			if err != nil {
				return err
			}
			defer to.Close()
			last := client.WorkflowState(0)
			for change, err := range to.WatchWorkflow(cmd.Context(), topic, args[0]) {
				if err != nil {
					return err
				}
				if c.Output == terminal.FormatJSON {
					if err := c.WriteJSON(getView{change.WorkflowStatus, change.Steps}); err != nil {
						return err
					}
					continue
				}
				for i := range change.Steps {
					s := &change.Steps[i]
					fmt.Fprintln(c.Out, terminal.Line(strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", s.Name, number(s.Copy), s.State, why(s)))))
				}
				if change.State != last {
					fmt.Fprintf(c.Out, "workflow is %s\n", change.State)
				}
				last = change.State
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	return cmd
}

// change is a command that changes a workflow and says how it stands then.
func (c commands) change(use, short string, args int, flags func(*cobra.Command),
	call func(ctx context.Context, to *client.Client, topic string, args []string) (client.WorkflowStatus, error),
) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, to *client.Client) error {
				s, err := call(ctx, to, topic, args)
				if err != nil {
					return err
				}
				return c.Say(s, "workflow %s of topic %s is %s: %s", s.ID, s.Topic, s.State, counts(s.StepCounts))
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	if flags != nil {
		flags(cmd)
	}
	return cmd
}

func (c commands) cancel() *cobra.Command {
	var note string
	return c.change("cancel ID", "End a workflow: pending tasks are deleted, workers are asked to stop", 1,
		func(cmd *cobra.Command) { cmd.Flags().StringVar(&note, "note", "", "why") },
		func(ctx context.Context, to *client.Client, topic string, args []string) (client.WorkflowStatus, error) {
			return to.CancelWorkflow(ctx, topic, args[0], note)
		})
}

func (c commands) pause() *cobra.Command {
	var by, note string
	return c.change("pause ID", "Stop a workflow from making steps; those that are made go on", 1,
		func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&by, "by", "", "who does it (default $USER)")
			cmd.Flags().StringVar(&note, "note", "", "why")
		},
		func(ctx context.Context, to *client.Client, topic string, args []string) (client.WorkflowStatus, error) {
			return to.PauseWorkflow(ctx, topic, args[0], cmp.Or(by, c.User()), note)
		})
}

func (c commands) resume() *cobra.Command {
	var note string
	return c.change("resume ID", "Undo pause", 1,
		func(cmd *cobra.Command) { cmd.Flags().StringVar(&note, "note", "", "why") },
		func(ctx context.Context, to *client.Client, topic string, args []string) (client.WorkflowStatus, error) {
			return to.ResumeWorkflow(ctx, topic, args[0], note)
		})
}

func (c commands) retry() *cobra.Command {
	var steps []string
	var from string
	return c.change("retry ID", "Make the steps anew that failed, also after the end", 1,
		func(cmd *cobra.Command) {
			cmd.Flags().StringArrayVar(&steps, "step", nil, "only this step; may be repeated (default all that failed)")
			cmd.Flags().StringVar(&from, "from", "", "this step and all behind it, done or not")
			cmd.MarkFlagsMutuallyExclusive("step", "from")
		},
		func(ctx context.Context, to *client.Client, topic string, args []string) (client.WorkflowStatus, error) {
			if from != "" {
				return to.RetryWorkflowFrom(ctx, topic, args[0], from)
			}
			return to.RetryWorkflow(ctx, topic, args[0], steps...)
		})
}

func (c commands) skip() *cobra.Command {
	var result string
	return c.change("skip ID STEP", "Make a step done that waits or failed", 2,
		func(cmd *cobra.Command) { cmd.Flags().StringVar(&result, "result", "", "what it returned") },
		func(ctx context.Context, to *client.Client, topic string, args []string) (client.WorkflowStatus, error) {
			return to.SkipStep(ctx, topic, args[0], args[1], []byte(result))
		})
}

// signalView is a signal that was left.
type signalView struct {
	ID     string `json:"id"`
	Signal string `json:"signal"`
}

func (c commands) signal() *cobra.Command {
	var topic, payload, id string
	cmd := &cobra.Command{
		Use:     "signal ID NAME",
		Short:   "Hand a workflow a signal; the step that waits for it is done",
		Example: "  ddq workflow signal order-17 approve --payload 'by ada'",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, to *client.Client) error {
				if err := to.SignalWorkflow(ctx, topic, args[0], client.Signal{Name: args[1], Payload: []byte(payload), ID: id}); err != nil {
					return err
				}
				return c.Say(signalView{args[0], args[1]}, "workflow %s has signal %s", args[0], args[1])
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&topic, "topic", "", anyTopic)
	fs.StringVar(&payload, "payload", "", "the result of the step that waits for it")
	fs.StringVar(&id, "signal-id", "", "makes a repeat harmless: the same one counts once")
	return cmd
}

// deletedView is a workflow that is gone.
type deletedView struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func (c commands) delete() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a workflow that has ended",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, to *client.Client) error {
				if err := to.DeleteWorkflow(ctx, topic, args[0]); err != nil {
					return err
				}
				return c.Say(deletedView{args[0], true}, "workflow %s deleted", args[0])
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	return cmd
}
