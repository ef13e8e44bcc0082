package topics

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// View is what -o json prints of a topic. Scripts depend on it: fields may be added, and
// neither renamed nor removed. Times are RFC 3339 in UTC with milliseconds, durations integers
// of milliseconds.
type View struct {
	Name         string `json:"name"`
	FormerShards int    `json:"former_shards,omitempty"` // of before a reshard
	policyView
	DeliveryPaused bool   `json:"delivery_paused"`
	EnqueuePaused  bool   `json:"enqueue_paused"`
	ResumedAt      string `json:"resumed_at,omitempty"` // when a ramp began
	RampMs         int64  `json:"ramp_ms,omitempty"`
	Version        int64  `json:"version"`
	*statusView           // describe only
}

// policyView is a policy.
type policyView struct {
	Shards              int             `json:"shards"`
	VisibilityTimeoutMs int64           `json:"visibility_timeout_ms"`
	MaxRetries          int             `json:"max_retries"`
	Backoff             *client.Backoff `json:"backoff"`
	MaxDelayMs          int64           `json:"max_delay_ms"`
	MaxPayloadBytes     int             `json:"max_payload_bytes"`
	DoneRetentionMs     int64           `json:"done_retention_ms"`
	DeadRetentionMs     int64           `json:"dead_retention_ms"`
	MaxDead             int             `json:"max_dead"`
	MaxBacklog          int             `json:"max_backlog"`
	PriorityAgeing      int             `json:"priority_ageing"`
	watchView
	WorkflowRetentionMs int64 `json:"workflow_retention_ms,omitempty"` // a server of before says nothing
	MaxWorkflows        int   `json:"max_workflows,omitempty"`
	MaxSchedules        int   `json:"max_schedules,omitempty"`
	limitsView
	IndexedAttributes []string `json:"indexed_attributes,omitempty"`
}

// watchView is the log of changes that a topic keeps.
type watchView struct {
	WatchRetentionMs int64 `json:"watch_retention_ms,omitempty"`
	WatchMaxEvents   int   `json:"watch_max_events,omitempty"`
}

// statusView is what is in a topic, and what it is worth.
type statusView struct {
	Depth          client.Depth `json:"depth"`
	Subscriptions  int          `json:"subscriptions"`
	Durability     string       `json:"durability,omitempty"`
	IndexingShards int          `json:"indexing_shards,omitempty"` // whose index is not ready
	DefaultPolicy  *policyView  `json:"default_policy,omitempty"`  // a server of before says nothing
}

// ViewOf is the view of a topic.
func ViewOf(t client.Topic) View {
	return View{
		Name:           t.Name,
		FormerShards:   t.FormerShards,
		policyView:     viewPolicy(&t.Policy),
		ResumedAt:      terminal.Clock(t.Resumed),
		RampMs:         t.Ramp.Milliseconds(),
		DeliveryPaused: t.DeliveryPaused,
		EnqueuePaused:  t.EnqueuePaused,
		Version:        t.Version,
	}
}

func viewPolicy(p *client.Policy) policyView {
	v := policyView{
		Shards:              value(p.Shards),
		VisibilityTimeoutMs: value(p.VisibilityTimeout).Milliseconds(),
		MaxRetries:          value(p.MaxRetries),
		Backoff:             p.Backoff,
		MaxDelayMs:          value(p.MaxDelay).Milliseconds(),
		MaxPayloadBytes:     value(p.MaxPayload),
		DoneRetentionMs:     value(p.DoneRetention).Milliseconds(),
		DeadRetentionMs:     value(p.DeadRetention).Milliseconds(),
		MaxDead:             value(p.MaxDead),
		MaxBacklog:          value(p.MaxBacklog),
		PriorityAgeing:      value(p.PriorityAgeing),
		WorkflowRetentionMs: value(p.WorkflowRetention).Milliseconds(),
		MaxWorkflows:        value(p.MaxWorkflows),
		MaxSchedules:        value(p.MaxSchedules),
		IndexedAttributes:   value(p.IndexedAttributes),
		limitsView:          viewLimits(p),
	}
	if v.WatchRetentionMs = value(p.WatchRetention).Milliseconds(); v.WatchRetentionMs > 0 {
		v.WatchMaxEvents = value(p.WatchMax)
	}
	return v
}

// ViewOfStatus is that of one with what is in it.
func ViewOfStatus(s client.TopicStatus) View {
	v := ViewOf(s.Topic)
	v.statusView = &statusView{s.Depth, s.Subscriptions, s.Durability, s.IndexingShards, nil}
	if s.DefaultPolicy != nil {
		v.DefaultPolicy = new(viewPolicy(s.DefaultPolicy))
	}
	return v
}

// Rows are the view for people.
func (v View) Rows() []table.Row {
	rows := []table.Row{
		{"name", v.Name}, {"paused", v.paused()}, {"shards", v.shards()},
		{"visibility timeout", node.DurationText(session.Millis(v.VisibilityTimeoutMs))}, {"max retries", v.MaxRetries}, {"backoff", session.BackoffText(v.Backoff)},
		{"max delay", node.DurationText(session.Millis(v.MaxDelayMs))}, {"max payload", terminal.ByteCount(int64(v.MaxPayloadBytes))},
		{"done retention", node.DurationText(session.Millis(v.DoneRetentionMs))}, {"dead retention", lastingOr(v.DeadRetentionMs, "for ever")},
		{"max dead", countOr(v.MaxDead, "any number")}, {"max backlog", countOr(v.MaxBacklog, "any number")}, {"priority ageing", v.PriorityAgeing}, {"version", v.Version},
	}
	if v.MaxWorkflows > 0 {
		rows = append(rows, table.Row{"workflows", fmt.Sprintf("%d open at most, kept for %s", v.MaxWorkflows, node.DurationText(session.Millis(v.WorkflowRetentionMs)))})
	}
	if v.MaxSchedules > 0 {
		rows = append(rows, table.Row{"schedules", fmt.Sprintf("%d at most", v.MaxSchedules)})
	}
	if v.RampMs > 0 {
		rows = append(rows, table.Row{"resumed", fmt.Sprintf("%s, rising for %s", v.ResumedAt, node.DurationText(session.Millis(v.RampMs)))})
	}
	if v.WatchRetentionMs > 0 {
		rows = append(rows, table.Row{"watch retention", fmt.Sprintf("%s, %d changes a shard", node.DurationText(session.Millis(v.WatchRetentionMs)), v.WatchMaxEvents)})
	}
	rows = append(rows, v.limitsView.rows()...)
	if len(v.IndexedAttributes) > 0 || v.indexing() > 0 {
		rows = append(rows, table.Row{"indexed attributes", v.indexed()})
	}
	if s := v.statusView; s != nil {
		d := s.Depth
		rows = append(rows, table.Row{"durability", s.Durability}, table.Row{"subscriptions here", s.Subscriptions},
			table.Row{"scheduled", d.Scheduled}, table.Row{"ready", d.Ready}, table.Row{"running", d.Running},
			table.Row{"done", d.Done}, table.Row{"dead", d.Dead})
		v.policyView.compare(s.DefaultPolicy, rows)
	}
	return rows
}

// compare says of each row of a policy whether that is the default, in a third column.
func (p policyView) compare(byDefault *policyView, rows []table.Row) {
	if byDefault == nil {
		return
	}
	is, would := p.texts(), byDefault.texts()
	for i, r := range rows {
		text, ok := is[r[0]]
		switch {
		case !ok:
		case text == would[r[0]]:
			rows[i] = append(r, "default")
		default:
			rows[i] = append(r, "set; default "+cmp.Or(would[r[0]], "none"))
		}
	}
}

// texts are the rows of a policy by their names.
func (p policyView) texts() map[any]string {
	all := map[any]string{}
	for _, r := range (View{policyView: p}).Rows() {
		all[r[0]] = fmt.Sprint(r[1])
	}
	for _, other := range []string{"name", "paused", "version"} {
		delete(all, other)
	}
	return all
}

// indexing is how many shards have an index that is not ready, as far as is known.
func (v View) indexing() int {
	if v.statusView == nil {
		return 0
	}
	return v.IndexingShards
}

// indexed are the names, and whether all tasks are found by them.
func (v View) indexed() string {
	names := strings.Join(v.IndexedAttributes, ", ")
	switch {
	case v.indexing() > 0:
		return strings.TrimSpace(fmt.Sprintf("%s (building: %d shards to go)", names, v.indexing()))
	case v.statusView != nil:
		return names + " (ready)"
	}
	return names
}

// lastingOr and countOr put what 0 means into words.
func lastingOr(ms int64, zero string) string {
	if ms == 0 {
		return zero
	}
	return node.DurationText(session.Millis(ms))
}

func countOr(n int, zero string) string {
	if n == 0 {
		return zero
	}
	return strconv.Itoa(n)
}

// shards is their number, and how many are left of before a reshard.
func (v View) shards() string {
	if v.FormerShards == 0 {
		return strconv.Itoa(v.Shards)
	}
	return fmt.Sprintf("%d, and %d former ones", v.Shards, v.FormerShards)
}

// rising says how long deliveries take to full speed, if they do.
func (v View) rising() string {
	if v.RampMs == 0 {
		return ""
	}
	return ", rising for " + node.DurationText(session.Millis(v.RampMs))
}

func (v View) paused() string {
	var what []string
	if v.DeliveryPaused {
		what = append(what, "delivery")
	}
	if v.EnqueuePaused {
		what = append(what, "enqueue")
	}
	return cmp.Or(strings.Join(what, ", "), "no")
}

// value is what p points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
