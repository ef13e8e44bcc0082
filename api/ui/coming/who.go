package coming

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// topicsCounted is how many topics a page counts, of each of which the server makes a forecast.
const topicsCounted = 20

// instant is a time as fields of forms have it.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// link is the address of the page that says who is due from one time on and before another.
func link(topic string, from, before time.Time) string {
	return frame.Link("due", "topic", topic, "from", instant(from), "before", instant(before))
}

// who is what is due in a span of time, and of whom.
type who struct {
	topic, from, before string // as they were asked for
	begin, end          time.Time
	wrong               frame.Mistakes
	topics              []topicDue
	uncounted           []string
	runs                []*ddqv1.PlannedRun
	next                string
	now                 time.Time
}

// topicDue is what is due of a topic.
type topicDue struct {
	name string
	due
	estimated bool
}

// whose makes the page of who is due.
func (s *section) whose(ctx context.Context, query url.Values) (frame.View, error) {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	w := &who{topic: query.Get("topic"), from: query.Get("from"), before: query.Get("before"), wrong: frame.Mistakes{}, now: now}
	if w.read(); len(w.wrong) == 0 {
		find := s.topics
		if w.topic != "" {
			find = s.ofTopic
		}
		if err := find(ctx, w, query.Get("page")); err != nil && !w.wrong.Take(err, map[string]string{"bucket_ms": "before", "to": "before", "topic": "topic"}) {
			return frame.View{}, err
		}
	}
	return frame.View{Title: "Due in a span of time", Page: "schedules", Code: w.wrong.Code(), Body: w.body()}, nil
}

// read reads the span; without one it is the hour that has begun.
func (w *who) read() {
	w.begin, w.end = w.now.Truncate(time.Hour), time.Time{}
	if from := w.wrong.Instant("from", w.from); from != 0 {
		w.begin = time.UnixMilli(from)
	}
	w.end = w.begin.Add(time.Hour)
	if before := w.wrong.Instant("before", w.before); before != 0 {
		w.end = time.UnixMilli(before)
	}
	if len(w.wrong) == 0 && w.end.Sub(w.begin) < time.Second {
		w.wrong.Add("before", "This is not after where the range begins.")
	}
}

// count asks for what is due of a topic.
func (s *section) count(ctx context.Context, w *who, topic string) error {
	r, err := s.schedules.Forecast(ctx, &ddqv1.ForecastRequest{Topic: topic, From: timestamppb.New(w.begin), To: timestamppb.New(w.end), BucketMs: w.end.Sub(w.begin).Milliseconds()})
	if err != nil {
		return err
	}
	one := span{buckets: 1}
	w.topics = append(w.topics, topicDue{topic, due{
		from: w.begin, before: w.end, tasks: one.column(r.GetPending())[0], runs: one.column(r.GetNext(), r.GetLater())[0], walks: one.column(r.GetRecipients())[0],
	}, !r.GetExact()})
	return nil
}

// topics counts a page of topics, as many as there is time for.
func (s *section) topics(ctx context.Context, w *who, token string) error {
	list, err := s.admin.ListTopics(ctx, &ddqv1.ListTopicsRequest{PageSize: topicsCounted, PageToken: token})
	if err != nil {
		return err
	}
	w.next = list.GetNextPageToken()
	short, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	for _, t := range list.GetTopics() {
		err := s.count(short, w, t.GetName())
		switch {
		case err != nil && short.Err() != nil && ctx.Err() == nil, status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.NotFound:
			w.uncounted = append(w.uncounted, t.GetName())
		case err != nil:
			return err
		}
	}
	slices.SortStableFunc(w.topics, func(a, b topicDue) int { return cmp.Compare(b.all(), a.all()) })
	return nil
}

// countPatience is how long topics of a page are counted.
const countPatience = 2 * time.Second

// ofTopic finds the runs of a topic, too.
func (s *section) ofTopic(ctx context.Context, w *who, token string) error {
	if err := s.count(ctx, w, w.topic); err != nil {
		return err
	}
	if !w.end.After(w.now) { // a run that is over is no plan
		return nil
	}
	runs, err := s.schedules.DryRun(ctx, &ddqv1.DryRunRequest{Topic: w.topic, From: timestamppb.New(w.begin), To: timestamppb.New(w.end), PageSize: frame.PageSize, PageToken: token})
	w.runs, w.next = runs.GetRuns(), runs.GetNextPageToken()
	return err
}

func (w *who) pairs() []string {
	return []string{"topic", w.topic, "from", w.from, "before", w.before}
}

func (w *who) body() g.Node {
	times := func(label, name string, at time.Time, text string) g.Node {
		if w.wrong[name] == "" && !at.IsZero() {
			text = instant(at)
		}
		return w.wrong.Input(label, name, h.Type("datetime-local"), h.Step("1"), h.Value(text))
	}
	return g.Group{
		frame.Filter("due", w.wrong.Input("Topic", "topic", h.Value(w.topic), h.MaxLength("128"), frame.AsTyped()),
			times("From (UTC)", "from", w.begin, w.from), times("Before (UTC)", "before", w.end, w.before)),
		g.If(len(w.wrong) == 0, w.found()),
	}
}

func (w *who) found() g.Node {
	all := g.Group{w.topicTable()}
	for _, name := range w.uncounted {
		all = append(all, frame.Warning("Topic "+frame.Cut(name)+" was not counted: too much is due."))
	}
	if w.topic != "" {
		all = append(all, w.runTable())
	}
	return append(all, frame.More(w.next, "due", w.pairs()...))
}

func (w *who) topicTable() g.Node {
	if len(w.topics) == 0 {
		return frame.None(w.next, "due", w.pairs()...)
	}
	heads := g.Group{frame.Heads("topic"), frame.NumberHeads("tasks", "runs of schedules", "tasks of audiences"), frame.Heads("counted")}
	return frame.Table("Due by topic", "What is due, by topic. Runs and tasks of audiences are planned: they are not made yet", heads, g.Map(w.topics, func(t topicDue) g.Node {
		tasks := h.Td(h.Class("number"), frame.Anchor(frame.CountText(t.tasks), "tasks", "topic", t.name, "due_from", instant(w.begin), "due_before", instant(w.end)))
		runs := h.Td(h.Class("number"), h.A(h.Href(link(t.name, w.begin, w.end)), g.Text(frame.CountText(t.runs))))
		counted := "exactly"
		if t.estimated {
			counted = "by estimate"
		}
		return h.Tr(frame.RowHead(frame.Anchor(frame.Cut(t.name), "topic", "name", t.name)), tasks, runs, frame.Counts(t.walks), frame.Cells(counted))
	}))
}

func (w *who) runTable() g.Node {
	if len(w.runs) == 0 {
		return h.P(g.Text("No schedule of it runs then"), g.If(w.next != "", g.Text(", as far as this page goes")), g.Text("."))
	}
	return frame.Table("Runs", "Runs that its schedules would make, by schedule", frame.Heads("schedule", "due", "occurrence", "makes"), g.Map(w.runs, func(r *ddqv1.PlannedRun) g.Node {
		makes := g.Group{g.Text("task "), h.Code(g.Text(frame.Cut(r.GetId())))}
		if r.GetAudience() {
			makes = g.Group{g.Text("a task for each recipient, in run "), h.Code(g.Text(frame.Cut(r.GetId())))}
		}
		return h.Tr(
			frame.RowHead(frame.Anchor(frame.Cut(r.GetSchedule()), "schedule", "topic", w.topic, "name", r.GetSchedule())),
			h.Td(frame.Exact(r.GetDue())), h.Td(frame.Exact(r.GetOccurrenceTime())), h.Td(makes))
	}))
}
