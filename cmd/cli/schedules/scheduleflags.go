package schedules

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// scheduleFlags describe a schedule.
type scheduleFlags struct {
	asked client.Schedule // what flags say as they are; the others are read into it by schedule

	at                   []string
	from, start, end     string
	payload, payloadFile string
	workflowFile         string
	overlap, catchUp     string
	target               targetFlags
	maxRetries, history  int
	backoff              session.BackoffFlag
	ifVersion            int64
	dryRun               bool
}

func (f *scheduleFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.asked.Topic, "topic", "", "topic of the schedule and of its tasks (required)")
	fs.StringArrayVar(&f.asked.Cron, "cron", nil, "when: minute hour day-of-month month day-of-week, with seconds first if there are six, or @daily and the like; may be repeated")
	node.DurationVar(fs, &f.asked.Every, "every", 0, "when: an interval, such as 10m")
	fs.StringVar(&f.from, "from", "", "what --every counts from: start, which is that of the schedule (default), or end, that of the run before")
	fs.StringArrayVar(&f.at, "at", nil, "when: an instant, RFC 3339 such as 2030-01-31T09:00:00Z; may be repeated")
	fs.StringVar(&f.asked.Zone, "zone", "", "time zone of --cron, such as Europe/Berlin, or recipient, the zone of each of an --audience (default UTC)")
	fs.StringVar(&f.start, "start", "", "no run before that: RFC 3339; --every counts from it")
	fs.StringVar(&f.end, "end", "", "no run after that: RFC 3339")
	fs.StringArrayVar(&f.asked.Calendars, "calendar", nil, "skip what falls into this calendar, see ddq calendar; may be repeated")
	node.DurationVar(fs, &f.asked.Jitter, "jitter", 0, "a run is due up to so much later than its time, always the same for the same time")

	fs.StringVar(&f.payload, "payload", "", "what the worker gets")
	fs.StringVar(&f.payloadFile, "payload-file", "", "file with what the worker gets; - is stdin")
	fs.StringVar(&f.workflowFile, "workflow-file", "", "in place of a task: file of the workflow that a run is, see ddq workflow submit; - is stdin")
	fs.StringToStringVar(&f.asked.Task.Attributes, "attr", nil, "attributes of the tasks: --attr tenant=acme --attr kind=invoice")
	fs.IntVar(&f.maxRetries, "max-retries", 0, "deliveries after the first (default the topic's)")
	node.DurationVar(fs, &f.asked.Task.VisibilityTimeout, "visibility-timeout", 0, "how long a hold lasts (default the topic's)")
	node.DurationVar(fs, &f.asked.Task.HandlerTimeout, "handler-timeout", 0, "how long a handler may run in one attempt (default the worker's)")
	fs.Var(&f.backoff, "backoff", node.BackoffUsage+" (default the topic's)")
	fs.IntVar(&f.asked.Task.Priority, "priority", 0, "which of the tasks that are due goes first: 0, the lowest, to 9")
	fs.StringVar(&f.asked.Task.FairnessKey, "fairness-key", "", "tasks of one key take turns with those of others")
	fs.IntVar(&f.asked.Task.FairnessWeight, "fairness-weight", 0, "how many tasks of the fairness key make a turn (default 1)")
	fs.StringVar(&f.asked.Task.RateKey, "rate-key", "", "tasks of one key share the key rate of the topic")
	fs.StringVar(&f.asked.Task.ConcurrencyKey, "concurrency-key", "", "tasks of one key share the key concurrency of the topic")
	node.DurationVar(fs, &f.asked.Task.ExpireAfter, "expire-after", 0, "dead-letter a task when it was not delivered so long after its due time")
	node.DurationVar(fs, &f.asked.Task.Slack, "slack", 0, "how much later a run may be due: runs are spread evenly over it")

	f.target.flags(fs)

	fs.StringVar(&f.overlap, "overlap", "", "what becomes of a time at which the run before is open: "+overlapChoices+" (default skip)")
	fs.StringVar(&f.catchUp, "catch-up", "", "which of the times that nobody saw, as in an outage, are made up for: last (default), all or none")
	node.DurationVar(fs, &f.asked.Grace, "grace", 0, "how late a time is not missed: 1s to 24h (default 1m)")
	node.DurationVar(fs, &f.asked.Within, "within", 0, "times missed by more are not made up for (default any are)")
	fs.IntVar(&f.asked.PauseAfterFailures, "pause-after-failures", 0, "pause after so many runs in a row that failed (default never)")
	fs.Int64Var(&f.asked.MaxRuns, "max-runs", 0, "end after so many runs (default never)")
	fs.IntVar(&f.history, "history", 0, "runs to remember: 0 to 100 (default 10)")
	fs.BoolVar(&f.asked.Untracked, "untracked", false, "with --overlap allow: do not follow how runs end, which makes them cheaper")
	fs.StringToStringVar(&f.asked.Labels, "label", nil, "labels to list schedules by: --label team=data")
	fs.BoolVar(&f.asked.Paused, "paused", false, "a new schedule begins paused; one that is there stays as it is")
	fs.StringVar(&f.asked.Note, "note", "", "why a new schedule begins paused")

	fs.Int64Var(&f.ifVersion, "if-version", 0, "only if the schedule has this version, as describe shows it; 0: only if there is none")
	fs.BoolVar(&f.dryRun, "dry-run", false, "check it and show its next times; change nothing")
}

// schedule builds what was asked for. in is read for --payload-file -.
func (f *scheduleFlags) schedule(fs *pflag.FlagSet, name string, in io.Reader) (client.Schedule, error) {
	s := f.asked
	s.Name, s.Task.Payload, s.Task.Backoff = name, []byte(f.payload), f.backoff.Own()
	switch {
	case s.Topic == "":
		return s, session.Usagef("--topic is required")
	case len(s.Cron) == 0 && !fs.Changed("every") && len(f.at) == 0:
		return s, session.Usagef("say when: --cron, --every or --at")
	case fs.Changed("payload") && fs.Changed("payload-file"):
		return s, session.Usagef("--payload and --payload-file exclude each other")
	}
	if err := cmp.Or(f.words(fs, &s), f.times(&s), f.target.fill(fs, &s)); err != nil {
		return s, err
	}
	if fs.Changed("max-retries") {
		s.Task.MaxRetries = &f.maxRetries
	}
	if fs.Changed("history") {
		s.History = &f.history
	}
	if f.payloadFile != "" {
		payload, err := terminal.ReadAll(in, f.payloadFile)
		if err != nil {
			return s, fmt.Errorf("payload: %w", err)
		}
		s.Task.Payload = payload
	}
	return s, f.workflow(&s, in)
}

// workflow reads the workflow that a run is, if it is one.
func (f *scheduleFlags) workflow(s *client.Schedule, in io.Reader) error {
	if f.workflowFile == "" {
		return nil
	}
	text, err := terminal.ReadAll(in, f.workflowFile)
	if err != nil {
		return fmt.Errorf("workflow: %w", err)
	}
	if err := readFlow(s, f.workflowFile, text); err != nil {
		return session.Usagef("%v", err)
	}
	return nil
}

// words reads the flags that take one of a few words.
func (f *scheduleFlags) words(fs *pflag.FlagSet, s *client.Schedule) (err error) {
	if s.EveryFromEnd, err = parseFrom(f.from); err != nil {
		return err
	}
	if fs.Changed("from") && !fs.Changed("every") {
		return session.Usagef("--from goes with --every")
	}
	if s.Overlap, err = parseOverlap(f.overlap); err != nil {
		return err
	}
	s.CatchUp, err = parseCatchUp(f.catchUp)
	return err
}

// times reads the flags that take instants.
func (f *scheduleFlags) times(s *client.Schedule) (err error) {
	for _, text := range f.at {
		at, err := session.ParseTime("at", text)
		if err != nil {
			return err
		}
		s.At = append(s.At, at)
	}
	if s.Start, err = session.ParseTime("start", f.start); err != nil {
		return err
	}
	s.End, err = session.ParseTime("end", f.end)
	return err
}

const overlapChoices = "skip, buffer-one, buffer-all, cancel-other or allow"

// parseOverlap takes words with a dash or an underscore; none is the zero Overlap.
func parseOverlap(text string) (client.Overlap, error) {
	if text == "" {
		return 0, nil
	}
	for o := client.OverlapSkip; o <= client.OverlapAllow; o++ {
		if o.String() == strings.ReplaceAll(text, "-", "_") {
			return o, nil
		}
	}
	return 0, session.Usagef("--overlap is %s, not %q", overlapChoices, text)
}

func parseCatchUp(text string) (client.CatchUp, error) {
	if text == "" {
		return 0, nil
	}
	for p := client.CatchUpLast; p <= client.CatchUpNone; p++ {
		if p.String() == text {
			return p, nil
		}
	}
	return 0, session.Usagef("--catch-up is last, all or none, not %q", text)
}

func parseFrom(text string) (fromEnd bool, err error) {
	switch text {
	case "", "start":
		return false, nil
	case "end":
		return true, nil
	}
	return false, session.Usagef("--from is start or end, not %q", text)
}

// dashed is a word of the wire as the command line spells it.
func dashed(word string) string { return strings.ReplaceAll(word, "_", "-") }

// clocks writes instants as JSON output has them.
func clocks(all []time.Time) []string {
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = terminal.Clock(t)
	}
	return texts
}
