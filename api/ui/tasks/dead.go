package tasks

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// reasons are those by which dead letters are looked for.
var reasons = []ddqv1.DeadReason{
	ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES, ddqv1.DeadReason_DEAD_REASON_PERMANENT, ddqv1.DeadReason_DEAD_REASON_EXPIRED,
	ddqv1.DeadReason_DEAD_REASON_CORRUPT, ddqv1.DeadReason_DEAD_REASON_HOLD_EXPIRED, ddqv1.DeadReason_DEAD_REASON_RATE_LIMITED,
	ddqv1.DeadReason_DEAD_REASON_CANCELLED, ddqv1.DeadReason_DEAD_REASON_UNDELIVERABLE,
}

// deadPage is a page of a topic's dead letters.
type deadPage struct {
	Topic, Reason, Error string // as they were asked for
	Wrong                frame.Mistakes
	Now                  time.Time
	Tasks                []*ddqv1.Task
	Next                 string
	May                  frame.May
}

// deadFields are those of the form, by what the server says is wrong.
var deadFields = map[string]string{"filter.reason": "reason", "filter.error_contains": "error"}

// readDead reads which dead letters are meant.
func readDead(query url.Values, wrong frame.Mistakes) *ddqv1.DeadLetterFilter {
	filter := &ddqv1.DeadLetterFilter{ErrorContains: query.Get("error")}
	filter.Reason, _ = frame.State(wrong, "reason", query.Get("reason"), reasons)
	return filter
}

// deadFilter reads which dead letters a form is about.
func deadFilter(form url.Values) (*ddqv1.DeadLetterFilter, error) {
	wrong := frame.Mistakes{}
	filter := readDead(form, wrong)
	for _, text := range wrong {
		return nil, status.Error(codes.InvalidArgument, "nothing was done: "+text)
	}
	return filter, nil
}

func (s *section) dead(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := deadPage{Topic: topic, Reason: query.Get("reason"), Error: query.Get("error"), Wrong: frame.Mistakes{}, Now: now, May: frame.Who(ctx).On(topic)}
	if filter := readDead(query, p.Wrong); len(p.Wrong) == 0 {
		list, err := s.admin.ListDeadLetters(ctx, &ddqv1.ListDeadLettersRequest{Topic: topic, Filter: filter, PageSize: frame.PageSize, PageToken: query.Get("page")})
		if err != nil && !p.Wrong.Take(err, deadFields) {
			return frame.View{}, err
		}
		p.Tasks, p.Next = list.GetTasks(), list.GetNextPageToken()
	}
	return frame.View{Title: "Dead letters of " + frame.Cut(topic), Page: "overview", Code: p.Wrong.Code(), Body: p.body()}, nil
}

func (p *deadPage) body() g.Node {
	return g.Group{
		h.P(frame.OfTopic(p.Topic)),
		p.filter("dead"),
		h.P(frame.Anchor("By reason and error", "dead/groups", p.pairs()...)),
		p.list(),
	}
}

// filter is where it is written which dead letters a page has.
func (p *deadPage) filter(page string) g.Node {
	return frame.Filter(page, frame.Hidden("topic", p.Topic), frame.Choice(p.Wrong, "Reason", "reason", "any", reasons, p.Reason),
		p.Wrong.Input("Error contains", "error", h.Value(p.Error), h.MaxLength("256"), frame.AsTyped()))
}

// pairs are what the page was asked for.
func (p *deadPage) pairs() []string {
	return []string{"topic", p.Topic, "reason", p.Reason, "error", p.Error}
}

// list is a form with the tasks, some of which may be ticked, and below it one for all of them.
func (p *deadPage) list() g.Node {
	if len(p.Wrong) > 0 {
		return nil
	}
	if len(p.Tasks) == 0 {
		return frame.None(p.Next, "dead", p.pairs()...)
	}
	heads := g.Group{g.If(p.May.Operate, frame.Heads("tick")), frame.Heads("id", "died", "reason"), frame.NumberHeads("attempts"), frame.Heads("last error")}
	return g.Group{
		frame.Post("dead/requeue", h.Class("list"), frame.Hidden(p.pairs()...),
			frame.Table("Dead letters", "", heads, g.Map(p.Tasks, p.row)),
			g.If(p.May.Operate, h.P(h.Class("acts"),
				frame.Button("Requeue those that are ticked", frame.Key("r"), h.Name("which"), h.Value("ticked")),
				frame.Danger("Delete those that are ticked", h.Name("which"), h.Value("ticked"), h.FormAction(frame.Link("dead/delete")))))),
		g.If(p.May.Operate, p.all()),
		frame.More(p.Next, "dead", p.pairs()...),
	}
}

func (p *deadPage) row(t *ddqv1.Task) g.Node {
	return h.Tr(
		g.If(p.May.Operate, h.Td(h.Label(h.Class("tick"),
			h.Span(h.Class("hidden"), g.Text("Tick "+frame.Cut(t.GetId()))), h.Input(h.Type("checkbox"), h.Name("id"), h.Value(t.GetId()))))),
		frame.RowHead(frame.Anchor(frame.Cut(t.GetId()), "task", "topic", p.Topic, "id", t.GetId())),
		h.Td(frame.Time(t.GetFinishedAt(), p.Now)),
		frame.Cells(frame.StateText(t.GetDeadReason())),
		frame.Digits(t.GetRetryCount()),
		frame.Cells(frame.Cut(t.GetLastError())),
	)
}

// all leads to what can be done to all that the filter matches, also on other pages.
func (p *deadPage) all() g.Node {
	return frame.Post("dead/count", frame.Hidden(p.pairs()...), frame.Button("All that the filter matches, on every page", h.Class("plain")))
}

// chosen are the dead letters that a form is about: those that were ticked, or with "all" those
// that its filter matches.
func chosen(form url.Values) (topic string, ids []string, filter *ddqv1.DeadLetterFilter, err error) {
	if topic, err = frame.Required(form, "topic"); err != nil {
		return "", nil, nil, err
	}
	if form.Get("which") == "all" {
		filter, err = deadFilter(form)
		return topic, nil, filter, err
	}
	if ids = form["id"]; len(ids) == 0 { // without ids, a call is about all of them
		return "", nil, nil, status.Error(codes.InvalidArgument, "nothing was done: none was ticked")
	}
	return topic, ids, nil, nil
}

func deadPath(form url.Values) string {
	return frame.Link("dead", "topic", form.Get("topic"), "reason", form.Get("reason"), "error", form.Get("error"))
}

func (s *section) requeueDead(ctx context.Context, form url.Values) (string, string, error) {
	topic, ids, filter, err := chosen(form)
	if err != nil {
		return "", "", err
	}
	if filter != nil {
		if err := s.agreed(ctx, form); err != nil {
			return "", "", err
		}
		if form.Get("rate") != "" {
			which := &ddqv1.OperationDeadLetters{Filter: filter}
			return s.start(ctx, form, &ddqv1.StartOperationRequest{Topic: topic, Action: &ddqv1.StartOperationRequest_RequeueDeadLetters{RequeueDeadLetters: which}})
		}
	}
	_, err = s.admin.RequeueDeadLetters(ctx, &ddqv1.RequeueDeadLettersRequest{Topic: topic, Ids: ids, Filter: filter})
	return deadPath(form), "requeued", err
}

func (s *section) deleteDead(ctx context.Context, form url.Values) (string, string, error) {
	topic, ids, filter, err := chosen(form)
	if err != nil {
		return "", "", err
	}
	if filter != nil {
		if err := frame.Typed(form, topic); err != nil {
			return "", "", err
		}
		if err := s.agreed(ctx, form); err != nil {
			return "", "", err
		}
		if form.Get("rate") != "" {
			which := &ddqv1.OperationDeadLetters{Filter: filter}
			return s.start(ctx, form, &ddqv1.StartOperationRequest{Topic: topic, Action: &ddqv1.StartOperationRequest_DeleteDeadLetters{DeleteDeadLetters: which}})
		}
	}
	_, err = s.admin.DeleteDeadLetters(ctx, &ddqv1.DeleteDeadLettersRequest{Topic: topic, Ids: ids, Filter: filter})
	return deadPath(form), "deleted", err
}

// dryRunDead has an operation count all that a filter matches, and changes nothing.
func (s *section) dryRunDead(ctx context.Context, form url.Values) (string, string, error) {
	topic, err := frame.Required(form, "topic")
	if err != nil {
		return "", "", err
	}
	filter, err := deadFilter(form)
	if err != nil {
		return "", "", err
	}
	which := &ddqv1.OperationDeadLetters{Filter: filter, DryRun: true}
	return s.start(ctx, form, &ddqv1.StartOperationRequest{Topic: topic, Action: &ddqv1.StartOperationRequest_RequeueDeadLetters{RequeueDeadLetters: which}})
}
