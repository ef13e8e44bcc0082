package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/shell"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

type workFlags struct {
	topic       string
	concurrency int
	command     string
	count       int64
	timeout     time.Duration
	grace       time.Duration
	direct      bool
	result      bool
}

func (f *workFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.topic, "topic", "", "topic to work on (required)")
	fs.IntVar(&f.concurrency, "concurrency", 1, "tasks at a time")
	fs.StringVar(&f.command, "exec", "", "shell command for each task (default print it)")
	fs.BoolVar(&f.result, "result", false, "with --exec: what a command prints is the result of its task, and not printed here")
	fs.Int64Var(&f.count, "count", 0, "stop after so many tasks (default never)")
	node.DurationVar(fs, &f.timeout, "handler-timeout", 0, "how long a task may run; then its command is killed, and the attempt has failed (default no limit)")
	node.DurationVar(fs, &f.grace, "grace", 30*time.Second, "how long running tasks may go on after SIGINT")
	fs.BoolVar(&f.direct, "direct", false, "connect to every node: no task takes a hop between nodes")
}

func (f *workFlags) check() error {
	switch {
	case f.topic == "":
		return session.Usagef("--topic is required")
	case f.concurrency < 1:
		return session.Usagef("--concurrency must be at least 1, not %d", f.concurrency)
	case f.count < 0:
		return session.Usagef("--count must not be negative")
	case f.result && f.command == "":
		return session.Usagef("--result is of commands: give --exec")
	}
	return cmp.Or(session.NotNegative("handler-timeout", f.timeout), session.NotNegative("grace", f.grace))
}

func workCommand(c *cli) *cobra.Command {
	var f workFlags
	cmd := &cobra.Command{
		Use:   "work --topic TOPIC",
		Short: "Work on tasks: print them, or run a command for each",
		Long: `Take due tasks of a topic, one after the other or --concurrency at a time, until
SIGINT. Running tasks are then finished, up to --grace. A second SIGINT ends it at once:
commands are killed, and their tasks come again when their holds run out.

With --exec a shell runs the command for each task, with the payload on stdin and
what else is known in the environment: DDQ_TASK_ID, DDQ_TOPIC, DDQ_ATTEMPT,
DDQ_EXECUTE_TIME, DDQ_HOLD_TOKEN, and each attribute as DDQ_ATTR_NAME; of a schedule
also DDQ_SCHEDULE, DDQ_OCCURRENCE_TIME, DDQ_RECIPIENT and DDQ_RECIPIENT_DATA (what is no
text in DDQ_RECIPIENT_DATA_BASE64); of a step of a workflow DDQ_WORKFLOW, DDQ_STEP,
DDQ_STEP_TRY, DDQ_STEP_COPY and DDQ_STEP_UNDO. Exit code 0
acks the task; any other has it retried, with the last line of stderr as error.
With --result stdout is kept as the task's result, up to 256 KiB, while the topic
keeps done tasks.
Each line that the command writes to file descriptor 3 is a task, as JSON, which is
enqueued with the ack, or not at all: topic (that of its own task when there is none),
id, payload or payload_base64, delay or execute_time, attributes, max_retries, priority,
and the keys of a task, such as ordering_key. Of a step of a workflow it may be {"grow": ...}
instead: steps, skip and again, as in the file of a workflow.
A command whose task was taken away, that runs longer than --handler-timeout, or that
still runs at the end of --grace is killed with all that it started, but for what has
left its process group, as with setsid. What it leaves in the background goes on when
it ends by itself; nothing is read of that.`,
		Example: `  ddq work --topic mail --concurrency 4 --exec './send-mail --id "$DDQ_TASK_ID"'
  ddq work --topic mail --count 1 -o json
  ddq work --topic order --exec 'charge && echo "{\"topic\":\"mail\",\"payload\":\"paid\"}" >&3'`,
		Args: session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return work(cmd.Context(), c, f)
		},
	}
	f.flags(cmd.Flags())
	c.KeyringFlag(cmd.Flags())
	return cmd
}

func work(ctx context.Context, c *cli, f workFlags) error {
	s, err := c.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Server(ctx); err != nil { // a worker would wait for ever for a server that is not there
		return err
	}
	_, err = s.DescribeTopic(ctx, f.topic)
	signaled := ctx
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	h := &workHandler{
		c: c, out: terminal.Shown(&lockedWriter{to: terminal.Raw(c.Out)}), err: terminal.Shown(&lockedWriter{to: terminal.Raw(c.Err)}), topic: f.topic,
		command: f.command, result: f.result, count: f.count, ending: ctx.Done(), enough: enough,
	}
	h.newTopic.Store(errors.Is(err, client.ErrNotFound))
	said := make(chan struct{})
	unsaid := context.AfterFunc(signaled, func() {
		defer close(said)
		h.sayStopping(f.grace)
	})
	defer func() {
		if !unsaid() {
			<-said
		}
	}()
	cfg := f.config(h.observe)
	if cfg.Codec, err = c.Codec(); err != nil {
		return err
	}
	defer c.abort.Now() // a handler that did not return in time leaves no command behind
	return worker.New(s.Conn(), cfg, h).Run(ctx)
}

// sayStopping says what the command waits for, if it does.
func (h *workHandler) sayStopping(grace time.Duration) {
	if n := h.running.Load(); n > 0 {
		fmt.Fprintf(h.err, "stopping: %d running tasks are finished first, for up to %v; interrupt again to end at once\n", n, grace)
	}
}

func (f *workFlags) config(observe func(worker.Event)) worker.Config {
	cfg := worker.Config{
		Topic: f.topic, Concurrency: f.concurrency, HandlerTimeout: f.timeout, Grace: f.grace, Direct: f.direct,
		Observe: observe, Logger: slog.New(slog.DiscardHandler), // the command says itself what matters
	}
	if f.grace == 0 {
		cfg.Grace = -1 // which is what the SDK calls none
	}
	if f.command != "" {
		cfg.MaxInFlight = f.concurrency // a task that waits for a slow command is better off elsewhere
	}
	return cfg
}

// workHandler is what `ddq work` does with a task.
type workHandler struct {
	c        *cli
	out, err io.Writer // safe for concurrent use
	topic    string
	newTopic atomic.Bool // there was none before this command
	command  string
	result   bool
	count    int64 // 0: no end
	ending   <-chan struct{}
	enough   func() // closes ending
	begun    atomic.Int64
	running  atomic.Int64
	greeted  atomic.Bool // it was said that the subscription is there
	finished atomic.Int64
	cut      sync.Map // by node, empty for any: the stream is broken, and was said to be
}

// Handle prints the task, or runs the command for it.
func (h *workHandler) Handle(ctx context.Context, t worker.Task) error {
	if n := h.begun.Add(1); h.count > 0 && n > h.count {
		<-h.ending // the last one may be long; until then this would only come back
		return worker.Release(0)
	}
	begun := time.Now()
	h.running.Add(1)
	err := h.run(ctx, t)
	h.running.Add(-1)
	h.report(t, begun, err)
	if n := h.finished.Add(1); n == h.count {
		h.enough()
	}
	return err
}

func (h *workHandler) run(ctx context.Context, t worker.Task) error {
	if h.command == "" {
		return nil
	}
	s := &shell.Command{Text: h.command, Environ: h.c.Environ, Out: terminal.Raw(h.out), Err: terminal.Raw(h.err), Abort: h.c.abort}
	s.Next = func(line []byte) error { return takeNext(t, line) }
	if !h.result {
		return s.Run(ctx, t.Payload, h.environment(t))
	}
	result := &resultBuffer{left: worker.MaxResult}
	s.Raw = result
	err := s.Run(ctx, t.Payload, h.environment(t))
	if result.full {
		return errLongResult
	}
	if err != nil {
		return err
	}
	return t.SetResult(result.got.Bytes())
}

// observe says once that the server, or with --direct a node, is gone, and that it
// is back.
func (h *workHandler) observe(e worker.Event) {
	select {
	case <-h.ending:
		return // streams end then
	default:
	}
	switch {
	case e.Kind == worker.Disconnected && e.Err != nil:
		if _, said := h.cut.LoadOrStore(e.Node, true); !said {
			h.lost(e)
		}
	case e.Kind == worker.Connected:
		_, said := h.cut.LoadAndDelete(e.Node)
		switch {
		case !h.greeted.Swap(true):
			h.greet()
		case said:
			fmt.Fprintf(h.err, "connected to %s again\n", cmp.Or(e.Node, h.c.Addr))
		}
	}
}

// greet says what the command waits for. A topic is made by a subscription, too, so a name
// that was mistyped is worth a word.
func (h *workHandler) greet() {
	note := ""
	if h.newTopic.Load() {
		note = "; the topic is new, made by this subscription"
	}
	fmt.Fprintf(h.err, "subscribed to %s at %s%s\n", h.topic, h.c.Addr, note)
}

func (h *workHandler) lost(e worker.Event) {
	if status.Code(e.Err) == codes.NotFound {
		h.newTopic.Store(false) // somebody else makes it
		fmt.Fprintf(h.err, "no topic %s at %s; waiting for it\n", h.topic, h.c.Addr)
		return
	}
	if e.Node == "" {
		fmt.Fprintf(h.err, "lost the server at %s (%s); connecting again\n", h.c.Addr, oneLine(e.Err))
		return
	}
	fmt.Fprintf(h.err, "lost node %s (%s); tasks come from the others\n", e.Node, oneLine(e.Err))
}

// workView is a line of -o json.
type workView struct {
	Topic         string            `json:"topic"`
	ID            string            `json:"id"`
	Attempt       int               `json:"attempt"`
	MaxRetries    int               `json:"max_retries"`
	ExecuteTime   string            `json:"execute_time"`
	LateMs        float64           `json:"late_ms"`
	Payload       *string           `json:"payload,omitempty"`
	PayloadBase64 []byte            `json:"payload_base64,omitempty"`
	Attributes    map[string]string `json:"attributes,omitempty"`
	runView
	TookMs int64  `json:"took_ms"`
	Error  string `json:"error,omitempty"`
}

// viewPayload shows text as text and anything else in base64.
func viewPayload(p []byte) (text *string, raw []byte) {
	if !utf8.Valid(p) {
		return nil, p
	}
	return new(string(p)), nil
}

// report prints what became of a task. The output of commands has stdout for
// itself unless JSON was asked for.
func (h *workHandler) report(t worker.Task, begun time.Time, err error) {
	late := float64(begun.Sub(t.Due).Microseconds()) / 1000
	v := workView{
		Topic: t.Topic, ID: t.ID, Attempt: t.Attempt, MaxRetries: t.MaxRetries, ExecuteTime: terminal.Clock(t.Due), LateMs: late,
		Attributes: t.Attributes, runView: viewRun(t.Run), TookMs: time.Since(begun).Milliseconds(),
	}
	v.Payload, v.PayloadBase64 = viewPayload(t.Payload)
	if err != nil {
		v.Error = oneLine(err)
	}
	switch {
	case h.c.Output == terminal.FormatJSON:
		_ = terminal.WriteJSON(h.out, v) // a reader that went away ends the command by its signal
	case err != nil:
		fmt.Fprintf(h.err, "task %s, attempt %d: %s\n", terminal.Line(t.ID), t.Attempt, v.Error)
	case h.command == "":
		fmt.Fprintf(h.out, "%s  due %s  handled %.2f ms later  attempt %d  %s\n", terminal.Line(t.ID), v.ExecuteTime, late, t.Attempt, terminal.Shorten(terminal.BytesText(t.Payload), 60))
	}
}

// environment is what a command learns about its task.
func (h *workHandler) environment(t worker.Task) []string {
	vars := []string{
		"DDQ_ADDR=" + h.c.Addr,
		"DDQ_TASK_ID=" + t.ID,
		"DDQ_TOPIC=" + t.Topic,
		"DDQ_ATTEMPT=" + strconv.Itoa(t.Attempt),
		"DDQ_MAX_RETRIES=" + strconv.Itoa(t.MaxRetries),
		"DDQ_EXECUTE_TIME=" + terminal.Clock(t.Due),
		"DDQ_HOLD_TOKEN=" + hex.EncodeToString(t.HoldToken),
	}
	vars = append(append(vars, viewRun(t.Run).environment()...), stepVars(t.Step)...)
	for _, key := range terminal.SortedKeys(t.Attributes) {
		vars = append(vars, attributePrefix+variableName(key)+"="+t.Attributes[key])
	}
	return vars
}

// variableName makes a name for the environment of any text: acme-id is ACME_ID.
func variableName(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
}
