package topics

import (
	"context"
	"fmt"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// topicPage is a topic: its tasks, what is due when, and its policy.
type topicPage struct {
	*ddqv1.DescribeTopicResponse
	Now          time.Time
	Minute, Hour *frame.Columns
	Policy       string
	May          frame.May
	Happened     *ddqv1.GetOverviewResponse
}

func (s *section) topic(ctx context.Context, query url.Values) (frame.View, error) {
	name, err := frame.Required(query, "name")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: name})
	if err != nil {
		return frame.View{}, err
	}
	p := topicPage{DescribeTopicResponse: about, Now: now, May: frame.Who(ctx).On(name)}
	if p.Happened, err = s.admin.GetOverview(ctx, &ddqv1.GetOverviewRequest{Topic: name}); err != nil {
		return frame.View{}, err
	}
	if p.Minute, err = s.due(ctx, name, nextMinute, now.Truncate(time.Second), time.Second, 60); err != nil {
		return frame.View{}, err
	}
	if p.Hour, err = s.due(ctx, name, "Due in the next hour, by minute", now.Truncate(time.Minute), time.Minute, 60); err != nil {
		return frame.View{}, err
	}
	p.Policy = policyText(about.GetTopic().GetPolicy())
	return frame.View{Title: "Topic " + frame.Cut(name), Page: "overview", Live: true, Body: p.body()}, nil
}

func (p *topicPage) body() g.Node {
	t := p.GetTopic()
	return g.Group{
		p.stopped(),
		p.figures(),
		p.pictures(),
		p.happened(),
		p.held(),
		p.links(),
		g.If(p.May.Operate, p.acts()),
		h.H2(g.Text("Policy "), frame.Quiet(fmt.Sprint("version ", t.GetVersion()))),
		p.policy(),
		g.If(p.May.Operate, frame.Fold("Change the policy", h.Class("act"), frame.Key("e"), (&policyEdit{topic: t, saw: p.Policy, wants: p.Policy}).form())),
		g.If(p.May.Admin, frame.Fold("Purge or delete", h.Class("act"), p.purge(), p.remove())),
	}
}

// stopped warns of a topic that does not give or take tasks.
func (p *topicPage) stopped() g.Node {
	var text string
	if p.GetTopic().GetDeliveryPaused() {
		text += "Delivery is paused. "
	}
	if p.GetTopic().GetEnqueuePaused() {
		text += "It takes no tasks."
	}
	return g.If(text != "", frame.Warning(text))
}

func (p *topicPage) figures() g.Node {
	figure := func(state string, n int64) g.Node {
		return frame.Figure(state, frame.Anchor(frame.CountText(n), "tasks", "topic", p.GetTopic().GetName(), "state", state))
	}
	d := p.GetDepth()
	return frame.Figures(
		figure("scheduled", d.GetScheduled()), figure("ready", d.GetReady()), figure("running", d.GetRunning()), figure("done", d.GetDone()),
		frame.Figure("dead", frame.Anchor(frame.CountText(d.GetDead()), "dead", "topic", p.GetTopic().GetName())),
		frame.Figure("workers here", g.Text(fmt.Sprint(p.GetSubscriptions()))),
	)
}

func (p *topicPage) pictures() g.Node {
	if p.Minute == nil {
		return g.Group{h.P(h.Class("quiet"), g.Text("Too much is due soon to be counted here.")), p.Hour.Picture()}
	}
	return g.Group{p.Minute.Picture(), p.Hour.Picture()}
}

// happened is what has happened to its tasks of late.
func (p *topicPage) happened() g.Node {
	return g.Group{incomplete(p.Happened), delivered(p.Now, p.Happened.GetTopics()).Picture(), pulseTable(p.pulse())}
}

// pulse is nil where nothing has happened.
func (p *topicPage) pulse() *ddqv1.Pulse {
	if all := p.Happened.GetTopics(); len(all) > 0 {
		return all[0].GetPulse()
	}
	return nil
}

func (p *topicPage) links() g.Node {
	all := g.Group{frame.OfTopic(p.GetTopic().GetName())}
	for _, to := range []string{"schedules", "workflows", "workers", "shards"} {
		all = append(all, g.Text(" · "), frame.Anchor("its "+to, to, "topic", p.GetTopic().GetName()))
	}
	return h.P(all)
}

// acts are what stops a topic, and what lets it go on.
func (p *topicPage) acts() g.Node {
	t := p.GetTopic()
	name, delivery, enqueue := frame.Hidden("name", t.GetName()), frame.Hidden("delivery", "1"), frame.Hidden("enqueue", "1")
	return h.Div(h.Class("acts"),
		g.If(t.GetDeliveryPaused() || t.GetEnqueuePaused(), frame.Post("topic/resume", h.Class("filter"), name,
			frame.Input("Full speed after", h.Name("ramp"), h.Value("0s"), g.Attr("size", "5"), h.MaxLength("20"), h.AutoComplete("off")), frame.Button("Resume", frame.Key("p")))),
		g.If(!t.GetDeliveryPaused(), frame.Post("topic/pause", name, delivery, g.If(t.GetEnqueuePaused(), enqueue), frame.Button("Pause delivery", h.Class("plain"), frame.Key("p")))),
		g.If(!t.GetEnqueuePaused(), frame.Post("topic/pause", name, enqueue, g.If(t.GetDeliveryPaused(), delivery), frame.Button("Take no tasks", h.Class("plain")))),
	)
}

func (p *topicPage) purge() g.Node {
	return frame.Post("topic/purge", h.Class("column"), frame.Hidden("name", p.GetTopic().GetName()),
		frame.Sure("To delete all tasks that no worker holds, type the name of the topic"), frame.Danger("Purge"))
}

func (p *topicPage) remove() g.Node {
	return frame.Post("topic/delete", h.Class("column"), frame.Hidden("name", p.GetTopic().GetName()),
		frame.Sure("To delete the topic, type its name"),
		h.Label(h.Class("tick"), h.Input(h.Type("checkbox"), h.Name("force"), h.Value("1")), g.Text(" and its tasks")), frame.Danger("Delete"))
}
