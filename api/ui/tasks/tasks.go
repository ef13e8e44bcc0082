package tasks

import (
	"context"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// states are those that tasks are listed by, in the order of a life.
var states = []ddqv1.TaskState{
	ddqv1.TaskState_TASK_STATE_SCHEDULED, ddqv1.TaskState_TASK_STATE_READY, ddqv1.TaskState_TASK_STATE_RUNNING, ddqv1.TaskState_TASK_STATE_RETRYING,
	ddqv1.TaskState_TASK_STATE_DONE, ddqv1.TaskState_TASK_STATE_DEAD, ddqv1.TaskState_TASK_STATE_EXPIRED,
}

// pendingStates are those of tasks that wait.
var pendingStates = []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_SCHEDULED, ddqv1.TaskState_TASK_STATE_READY, ddqv1.TaskState_TASK_STATE_RETRYING}

// tasksPage is a page of a topic's tasks.
type tasksPage struct {
	*filter
	Now   time.Time
	Tasks []*ddqv1.Task
	Next  string
	May   frame.May
}

// tasks lists those of a topic: all that are alive, or that a filter matches.
func (s *section) tasks(ctx context.Context, query url.Values) (frame.View, error) {
	filter, err := readFilter(query)
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := tasksPage{filter: filter, Now: now, May: frame.Who(ctx).On(filter.topic)}
	if len(p.wrong) == 0 {
		list, err := s.queue.ListTasks(ctx, &ddqv1.ListTasksRequest{Topic: p.topic, Filter: p.filter.tasks, PageSize: frame.PageSize, PageToken: query.Get("page")})
		if err != nil && !p.take(err) {
			return frame.View{}, err
		}
		p.Tasks, p.Next = list.GetTasks(), list.GetNextPageToken()
	}
	return frame.View{Title: "Tasks of " + frame.Cut(p.topic), Page: "overview", Code: p.wrong.Code(), Body: p.body()}, nil
}

func (p *tasksPage) body() g.Node {
	return g.Group{
		p.form(),
		h.P(frame.OfTopic(p.topic)),
		p.table(),
		g.If(p.May.Operate && len(p.wrong) == 0 && p.narrow() && p.pending(),
			frame.Post("tasks/count", frame.Hidden(p.pairs()...), frame.Button("All that the filter matches, on every page", h.Class("plain")))),
	}
}

func (p *tasksPage) table() g.Node {
	switch {
	case len(p.wrong) > 0:
		return nil
	case len(p.Tasks) == 0:
		return frame.None(p.Next, "tasks", p.pairs()...)
	}
	return g.Group{
		frame.Table("Tasks", "Tasks; those that are pending in order of their due times within a shard",
			g.Group{frame.Heads("id", "state", "due"), frame.NumberHeads("attempts"), frame.Heads("last error")}, g.Map(p.Tasks, p.row)),
		frame.More(p.Next, "tasks", p.pairs()...),
	}
}

func (p *tasksPage) row(t *ddqv1.Task) g.Node {
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(t.GetId()), "task", "topic", p.topic, "id", t.GetId())),
		frame.Cells(frame.StateText(t.GetState())),
		h.Td(frame.Time(t.GetExecuteTime(), p.Now)),
		frame.Digits(t.GetRetryCount()),
		frame.Cells(frame.Cut(t.GetLastError())),
	)
}
