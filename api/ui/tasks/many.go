package tasks

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// many are all pending tasks that a filter matches, on every page.
type many struct {
	*filter
	matched
}

// readMany reads the filter of a form, without those that are running: they are neither deleted nor moved.
func readMany(form url.Values) (*many, error) {
	f, err := readFilter(form)
	if err != nil {
		return nil, err
	}
	for _, text := range f.wrong {
		return nil, status.Error(codes.InvalidArgument, "nothing was done: "+text)
	}
	if !f.narrow() || !f.pending() {
		return nil, status.Error(codes.InvalidArgument, "nothing was done: a filter has to say which of the tasks that wait are meant")
	}
	if len(f.tasks.States) == 0 {
		f.tasks.States = pendingStates
	}
	return &many{filter: f}, nil
}

// counted counts them by reading them.
func (s *section) counted(ctx context.Context, form url.Values) (*many, error) {
	m, err := readMany(form)
	if err != nil {
		return nil, err
	}
	r := &ddqv1.ListTasksRequest{Topic: m.topic, Filter: m.tasks, PageSize: countPage}
	return m, m.read(func(token string) (int, string, error) {
		r.PageToken = token
		list, err := s.queue.ListTasks(ctx, r)
		return len(list.GetTasks()), list.GetNextPageToken(), err
	})
}

// countTasks asks whether all of them are meant, and what is to be done.
func (s *section) countTasks(ctx context.Context, form url.Values) (frame.View, error) {
	m, err := s.counted(ctx, form)
	if err != nil {
		return frame.View{}, err
	}
	return m.view(), nil
}

func (m *many) view() frame.View {
	return frame.View{Title: "All that the filter matches", Page: "overview", Body: m.body()}
}

func (m *many) body() g.Node {
	facts := g.Group{frame.Fact("topic", g.Text(frame.Cut(m.topic)))}
	for i, label := range []string{"state", "id begins with", "attribute", "due from", "due before", "created from", "created before"} {
		facts = append(facts, frame.FactIf(label, m.query.Get(filterFields[i])))
	}
	return g.Group{
		h.P(frame.Anchor("Tasks of "+frame.Cut(m.topic), "tasks", m.pairs()...)),
		g.If(m.refused != "", frame.Alert(m.refused)),
		h.P(g.Text(m.text("task that waits", "tasks that wait"))),
		frame.Facts(facts),
		g.If(m.count > 0, m.forms()),
	}
}

func (m *many) forms() g.Node {
	which := g.Group{frame.Hidden(m.pairs()...), frame.Hidden("count", fmt.Sprint(m.count))}
	return g.Group{
		h.P(h.Class("quiet"), g.Text("An operation does it, which goes on without this page; a million are changed at the most.")),
		frame.Post("tasks/reschedule", h.Class("column"), which,
			frame.Input("Due in", h.Name("delay"), h.Required(), h.Value("15m"), h.MaxLength("40"), h.AutoComplete("off")),
			frame.Input("Spread over", h.Name("spread"), h.Value("0s"), h.MaxLength("40"), h.AutoComplete("off")),
			rateField(), frame.Button("Reschedule all of them")),
		frame.Post("tasks/delete", h.Class("column"), which, rateField(), frame.Sure("To delete all of them, type the name of the topic"), frame.Danger("Delete all of them")),
	}
}

// meant returns the filter of a form that was counted, unless it matches by far more than the visitor was told.
func (s *section) meant(ctx context.Context, form url.Values) (*many, error) {
	told, err := frame.Number(form, "count")
	if err != nil {
		return nil, err
	}
	m, err := s.counted(ctx, form)
	if err != nil {
		return nil, err
	}
	if !m.agrees(told) {
		return nil, &frame.Question{View: m.view()}
	}
	return m, nil
}

func (s *section) deleteTasks(ctx context.Context, form url.Values) (string, string, error) {
	if err := frame.Typed(form, form.Get("topic")); err != nil {
		return "", "", err
	}
	m, err := s.meant(ctx, form)
	if err != nil {
		return "", "", err
	}
	return s.start(ctx, form, &ddqv1.StartOperationRequest{Topic: m.topic, Action: &ddqv1.StartOperationRequest_DeleteTasks{DeleteTasks: &ddqv1.OperationDelete{Filter: m.tasks}}})
}

func (s *section) rescheduleTasks(ctx context.Context, form url.Values) (string, string, error) {
	delay, err := time.ParseDuration(form.Get("delay"))
	if err != nil {
		return "", "", status.Error(codes.InvalidArgument, "nothing was done: a delay is such as 90s, 15m or 36h")
	}
	move := &ddqv1.OperationReschedule{When: &ddqv1.OperationReschedule_Delay{Delay: durationpb.New(delay)}}
	if text := form.Get("spread"); text != "" {
		spread, err := time.ParseDuration(text)
		if err != nil {
			return "", "", status.Error(codes.InvalidArgument, "nothing was done: a spread is such as 90s, 15m or 36h")
		}
		move.Spread = durationpb.New(spread)
	}
	m, err := s.meant(ctx, form)
	if err != nil {
		return "", "", err
	}
	move.Filter = m.tasks
	return s.start(ctx, form, &ddqv1.StartOperationRequest{Topic: m.topic, Action: &ddqv1.StartOperationRequest_RescheduleTasks{RescheduleTasks: move}})
}

// start starts an operation at the rate of a form, and leads to it.
func (s *section) start(ctx context.Context, form url.Values, r *ddqv1.StartOperationRequest) (page, did string, err error) {
	if r.RatePerS, err = frame.Number(form, "rate"); err != nil {
		return "", "", err
	}
	started, err := s.operations.StartOperation(ctx, r)
	return frame.Link("operation", "topic", r.Topic, "id", started.GetOperation().GetId()), "started", err
}
