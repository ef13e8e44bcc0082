package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// enqueueBatch is how many tasks of --count go out at a time.
const enqueueBatch = 500

// enqueueFlags describe the task, or the first of --count alike.
type enqueueFlags struct {
	asked client.Task // what flags say as they are; the others are read into it by task

	at, latest, expireAt string
	payload, payloadFile string
	count, maxRetries    int
	backoff              session.BackoffFlag
	key                  idempotencyFlags
}

func (f *enqueueFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.asked.Topic, "topic", "", "topic of the task (required)")
	node.DurationVar(fs, &f.asked.Delay, "delay", 0, "how long from now the task is due, such as 5s (default now)")
	fs.StringVar(&f.at, "at", "", "when the task is due: RFC 3339 such as 2030-01-31T15:04:05.250Z")
	fs.StringVar(&f.asked.ID, "id", "", "id of the task, unique in the topic; makes a repeat harmless (default a new UUIDv7)")
	fs.StringVar(&f.payload, "payload", "", "what the worker gets")
	fs.StringVar(&f.payloadFile, "payload-file", "", "file with what the worker gets; - is stdin")
	fs.StringToStringVar(&f.asked.Attributes, "attr", nil, "attributes of the task: --attr tenant=acme --attr kind=invoice")
	fs.IntVar(&f.count, "count", 1, "enqueue so many; ids get -0, -1, ... appended")
	fs.IntVar(&f.maxRetries, "max-retries", 0, "deliveries after the first (default the topic's)")
	node.DurationVar(fs, &f.asked.VisibilityTimeout, "visibility-timeout", 0, "how long a hold lasts (default the topic's)")
	node.DurationVar(fs, &f.asked.HandlerTimeout, "handler-timeout", 0, "how long a handler may run in one attempt (default the worker's)")
	fs.Var(&f.backoff, "backoff", node.BackoffUsage+" (default the topic's)")
	fs.IntVar(&f.asked.Priority, "priority", 0, "which of the tasks that are due goes first: 0, the lowest, to 9")
	fs.StringVar(&f.asked.FairnessKey, "fairness-key", "", "tasks of one key take turns with those of others")
	fs.StringVar(&f.asked.RateKey, "rate-key", "", "tasks of one key share the key rate of the topic")
	fs.StringVar(&f.asked.OrderingKey, "ordering-key", "", "tasks of one key are held one at a time, in order of their due times")
	fs.StringVar(&f.asked.ConcurrencyKey, "concurrency-key", "", "tasks of one key share the key concurrency of the topic")
	fs.IntVar(&f.asked.FairnessWeight, "fairness-weight", 0, "how many tasks of the fairness key make a turn (default 1)")
	f.key.flags(fs)
	node.DurationVar(fs, &f.asked.Slack, "slack", 0, "how much later the task may run: tasks are spread evenly over it")
	fs.StringVar(&f.latest, "latest", "", "the latest time at which the task may run, instead of --slack: RFC 3339")
	node.DurationVar(fs, &f.asked.ExpireAfter, "expire-after", 0, "dead-letter the task when it was not delivered so long after its due time")
	fs.StringVar(&f.expireAt, "expire-at", "", "dead-letter the task when it was not delivered by then: RFC 3339")
}

func enqueueCommand(c *cli) *cobra.Command {
	var f enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue --topic TOPIC",
		Short: "Enqueue a task, or many",
		Example: `  ddq enqueue --topic mail --delay 5s --payload 'hello'
  ddq enqueue --topic report --at 2030-01-31T09:00:00Z --id report-2030-01 --payload-file report.json`,
		Args: session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			task, err := f.task(cmd.Flags(), c.In)
			if err != nil {
				return err
			}
			return enqueue(cmd.Context(), c, task, f.count)
		},
	}
	f.flags(cmd.Flags())
	c.KeyringFlag(cmd.Flags())
	return cmd
}

// task builds what was asked for. in is read for --payload-file -.
func (f *enqueueFlags) task(fs *pflag.FlagSet, in io.Reader) (client.Task, error) {
	t := f.asked
	t.Payload, t.Backoff = []byte(f.payload), f.backoff.Own()
	switch {
	case t.Topic == "":
		return t, session.Usagef("--topic is required")
	case f.count < 1:
		return t, session.Usagef("--count must be at least 1, not %d", f.count)
	}
	if err := cmp.Or(onlyOne(fs, exclusive[:]), f.key.read(fs, &t), f.times(&t)); err != nil {
		return t, err
	}
	if fs.Changed("max-retries") {
		t.MaxRetries = &f.maxRetries
	}
	if f.payloadFile != "" {
		payload, err := terminal.ReadAll(in, f.payloadFile)
		if err != nil {
			return t, fmt.Errorf("payload: %w", err)
		}
		t.Payload = payload
	}
	return t, nil
}

// times adds the instants that were given.
func (f *enqueueFlags) times(t *client.Task) (err error) {
	if t.Due, err = session.ParseTime("at", f.at); err != nil {
		return err
	}
	if t.Latest, err = session.ParseTime("latest", f.latest); err != nil {
		return err
	}
	t.Expires, err = session.ParseTime("expire-at", f.expireAt)
	return err
}

// exclusive are flags of which one line has one at most.
var exclusive = [...][2]string{
	{"payload", "payload-file"}, {"attr", "no-attr"}, {"delay", "at"}, {"slack", "latest"},
	{"expire-at", "expire-after"}, {"expire-at", "no-expiry"}, {"expire-after", "no-expiry"},
}

// onlyOne refuses a line with both flags of a pair.
func onlyOne(fs *pflag.FlagSet, pairs [][2]string) error {
	for _, pair := range pairs {
		if fs.Changed(pair[0]) && fs.Changed(pair[1]) {
			return session.Usagef("--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	return nil
}

// receiptView is a line of -o json.
type receiptView struct {
	Topic         string `json:"topic"`
	ID            string `json:"id"`
	ExecuteTime   string `json:"execute_time"`
	Deduplicated  bool   `json:"deduplicated"`
	ReplacedState string `json:"replaced_state,omitempty"`
	KeyOutcome    string `json:"idempotency_outcome,omitempty"`
}

func viewReceipt(r client.Receipt) receiptView {
	v := receiptView{Topic: r.Topic, ID: r.ID, ExecuteTime: terminal.Clock(r.Due), Deduplicated: r.Deduplicated}
	if r.Key != 0 {
		v.KeyOutcome = r.Key.String()
	}
	if r.Replaced != client.StateUnknown {
		v.ReplacedState = r.Replaced.String()
	}
	return v
}

// enqueue sends count tasks like t and prints the receipts as they come.
func enqueue(ctx context.Context, c *cli, t client.Task, count int) error {
	s, err := c.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	bar := c.Progress(count, "enqueued")
	defer bar.Finish()
	done := 0
	for done < count && err == nil {
		var results []client.Result
		results, err = s.EnqueueBatch(ctx, batchOf(t, done, min(enqueueBatch, count-done), count))
		n, printed := printReceipts(c, results)
		done += n
		bar.Set(done)
		err = cmp.Or(err, printed)
	}
	bar.Finish()
	if count > 1 {
		fmt.Fprintf(c.Err, "%d of %d tasks enqueued\n", done, count)
	}
	return err
}

// printReceipts prints those of results that were stored and counts them.
func printReceipts(c *cli, results []client.Result) (stored int, err error) {
	buffer := bufio.NewWriter(terminal.Raw(c.Out)) // which knows no characters
	out := terminal.Shown(buffer)
	for _, r := range results {
		if r.Err != nil {
			continue
		}
		stored++
		if v := viewReceipt(r.Receipt); c.Output == terminal.FormatJSON {
			err = cmp.Or(err, terminal.WriteJSON(out, v))
		} else {
			fmt.Fprintln(out, strings.TrimSpace(terminal.Line(v.ID)+"  "+v.ExecuteTime+"  "+v.note()))
		}
	}
	return stored, cmp.Or(err, buffer.Flush())
}

// batchOf returns n copies of t, numbered from first when there are several.
func batchOf(t client.Task, first, n, count int) []client.Task {
	batch := make([]client.Task, n)
	for i := range batch {
		batch[i] = t
		if t.ID != "" && count > 1 {
			batch[i].ID = t.ID + "-" + strconv.Itoa(first+i)
		}
	}
	return batch
}

// note is what is special about a receipt.
func (v receiptView) note() string {
	switch {
	case v.KeyOutcome == client.KeyReturned.String():
		return "has the key"
	case v.KeyOutcome == client.KeyReplaced.String():
		return "was replaced"
	case v.KeyOutcome == client.KeyBeside.String():
		return "beside the one that had the key"
	case v.Deduplicated:
		return "enqueued before"
	case v.ReplacedState != "":
		return "replaces one that was " + v.ReplacedState
	}
	return ""
}
