package tasks

import (
	"context"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// tasksPage is a page of a topic's tasks.
type tasksPage struct {
	Topic, State, ID string // as they were asked for
	Now              time.Time
	Tasks            []*ddqv1.Task
	Next             string
}

// tasks lists those of a topic: all that are alive, or of a state, whose ids begin with a text.
func (s *section) tasks(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	filter := &ddqv1.TaskFilter{IdPrefix: query.Get("id")}
	if name := query.Get("state"); name != "" {
		i := slices.IndexFunc(states, func(s ddqv1.TaskState) bool { return frame.StateText(s) == name })
		if i < 0 {
			return frame.View{}, status.Error(codes.InvalidArgument, "there is no state "+frame.Cut(name))
		}
		filter.States = states[i : i+1]
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.queue.ListTasks(ctx, &ddqv1.ListTasksRequest{Topic: topic, Filter: filter, PageSize: frame.PageSize, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	p := tasksPage{Topic: topic, State: query.Get("state"), ID: query.Get("id"), Now: now, Tasks: list.GetTasks(), Next: list.GetNextPageToken()}
	return frame.View{Title: "Tasks of " + frame.Cut(topic), Page: "overview", Body: p.body()}, nil
}

func (p *tasksPage) body() g.Node {
	return g.Group{
		frame.Filter("tasks", frame.Hidden("topic", p.Topic), frame.Choice("State", "state", "alive", states, p.State),
			frame.Input("Id begins with", h.Name("id"), h.Value(p.ID), h.MaxLength("128"), frame.AsTyped())),
		h.P(frame.OfTopic(p.Topic)),
		p.table(),
	}
}

func (p *tasksPage) table() g.Node {
	pairs := []string{"topic", p.Topic, "state", p.State, "id", p.ID}
	if len(p.Tasks) == 0 {
		return frame.None(p.Next, "tasks", pairs...)
	}
	return g.Group{
		frame.Table("Tasks", "Tasks; those that are pending in order of their due times within a shard",
			g.Group{frame.Heads("id", "state", "due"), frame.NumberHeads("attempts"), frame.Heads("last error")}, g.Map(p.Tasks, p.row)),
		frame.More(p.Next, "tasks", pairs...),
	}
}

func (p *tasksPage) row(t *ddqv1.Task) g.Node {
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(t.GetId()), "task", "topic", p.Topic, "id", t.GetId())),
		frame.Cells(frame.StateText(t.GetState())),
		h.Td(frame.Time(t.GetExecuteTime(), p.Now)),
		frame.Digits(t.GetRetryCount()),
		frame.Cells(frame.Cut(t.GetLastError())),
	)
}
