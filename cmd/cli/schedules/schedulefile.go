package schedules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/workflowfile"
	"github.com/ddq-io/ddq/cmd/node"
)

// A file of schedules has the names of scheduleView, and lengths of time as flags take them:
// every: 10m, which every_ms: 600000 is too.

// spans are the names that take a length of time.
var spans = []string{"every", "jitter", "grace", "within", "visibility_timeout", "handler_timeout", "expire_after", "slack", "spread", "grain"}

// readSchedules reads a file of schedules.
func readSchedules(text []byte) ([]client.Schedule, error) {
	file, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	list, ok := file["schedules"].([]any)
	if !ok || len(file) != 1 {
		return nil, fmt.Errorf("want one list called schedules, and found %s", cmp.Or(strings.Join(slices.Sorted(maps.Keys(file)), ", "), "nothing"))
	}
	all := make([]client.Schedule, len(list))
	seen := make(map[string]bool)
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("schedule %d is no list of names and values", i+1)
		}
		name := fields["name"]
		if all[i], err = readSchedule(fields); err != nil {
			return nil, fmt.Errorf("schedule %d (%v): %w", i+1, name, workflowfile.At(strings.Split(string(text), "\n"), err))
		}
		key := all[i].Topic + "/" + all[i].Name
		if seen[key] {
			return nil, fmt.Errorf("schedule %s is there twice", key)
		}
		seen[key] = true
	}
	return all, nil
}

func readSchedule(fields map[string]any) (s client.Schedule, err error) {
	for _, name := range spans {
		text, ok := fields[name].(string)
		if !ok {
			continue
		}
		d, err := node.ParseDuration(text)
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		delete(fields, name)
		fields[name+"_ms"] = d.Milliseconds()
	}
	if one, ok := fields["cron"].(string); ok {
		fields["cron"] = []string{one}
	}
	if err := readBackoffText(fields); err != nil {
		return s, err
	}
	flow, err := takeWorkflow(fields)
	if err != nil {
		return s, err
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return s, err
	}
	var v scheduleView
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		return s, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if s, err = v.schedule(); err == nil {
		err = giveWorkflow(&s, flow)
	}
	return s, err
}

// readBackoffText takes a backoff as --backoff does.
func readBackoffText(fields map[string]any) error {
	text, ok := fields["backoff"].(string)
	if !ok {
		return nil
	}
	var flag session.BackoffFlag
	if err := flag.Set(text); err != nil {
		return fmt.Errorf("backoff: %w", err)
	}
	fields["backoff"] = flag.Own()
	return nil
}

// schedule is the view as it is put.
func (v *scheduleView) schedule() (s client.Schedule, err error) {
	switch {
	case v.Topic == "":
		return s, fmt.Errorf("topic is required")
	case v.Name == "":
		return s, fmt.Errorf("name is required")
	}
	s = client.Schedule{
		Topic: v.Topic, Name: v.Name, Cron: v.Cron, Every: session.Millis(v.EveryMs), Zone: v.Zone, Calendars: v.Calendars, Jitter: session.Millis(v.JitterMs), Task: v.task(),
		Grace: session.Millis(v.GraceMs), Within: session.Millis(v.WithinMs), PauseAfterFailures: v.PauseAfterFailures, MaxRuns: v.MaxRuns,
		History: v.History, Untracked: v.Untracked, Labels: v.Labels,
	}
	if s.Audience, err = v.target(); err != nil {
		return s, err
	}
	for _, ms := range v.AlsoEveryMs {
		s.AlsoEvery = append(s.AlsoEvery, session.Millis(ms))
	}
	for _, text := range v.At {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return s, fmt.Errorf("at: want RFC 3339 such as 2030-01-31T15:04:05Z, not %q", text)
		}
		s.At = append(s.At, at)
	}
	if s.Start, err = session.ParseTime("start", v.Start); err != nil {
		return s, err
	}
	if s.End, err = session.ParseTime("end", v.End); err != nil {
		return s, err
	}
	if s.EveryFromEnd, err = parseFrom(v.From); err != nil {
		return s, err
	}
	if s.Overlap, err = parseOverlap(v.Overlap); err != nil {
		return s, err
	}
	s.CatchUp, err = parseCatchUp(v.CatchUp)
	return s, err
}

func (v *templateView) task() client.Task {
	t := client.Task{
		Payload: []byte(v.Payload), Attributes: v.Attributes, MaxRetries: v.MaxRetries, Backoff: v.Backoff, Priority: v.Priority,
		VisibilityTimeout: session.Millis(v.VisibilityTimeoutMs), HandlerTimeout: session.Millis(v.HandlerTimeoutMs),
		FairnessKey: v.FairnessKey, FairnessWeight: v.FairnessWeight, RateKey: v.RateKey, ConcurrencyKey: v.ConcurrencyKey,
		ExpireAfter: session.Millis(v.ExpireAfterMs), Slack: session.Millis(v.SlackMs),
	}
	if len(v.PayloadBase64) > 0 {
		t.Payload = v.PayloadBase64
	}
	return t
}

// lines are what a schedule says, a name and a value each, with the defaults that the server
// fills in.
func (v scheduleView) lines() []string {
	v.Overlap, v.CatchUp = cmp.Or(dashed(v.Overlap), "skip"), cmp.Or(v.CatchUp, client.CatchUpLast.String())
	if v.Overlap == "unknown" {
		v.Overlap = "skip"
	}
	if v.CatchUp == "unknown" {
		v.CatchUp = "last"
	}
	if v.GraceMs == 0 {
		v.GraceMs = time.Minute.Milliseconds()
	}
	if v.History == nil {
		v.History = new(10)
	}
	if v.From == "start" {
		v.From = ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil // a view has nothing that cannot be written
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, name+": "+string(fields[name]))
	}
	return lines
}
