package tasks

import (
	"context"
	"fmt"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// bulk are all dead letters that a filter matches, on every page.
type bulk struct {
	topic, reason, err string
	group              int64 // how many a group of theirs has, of those that were examined; 0: no group is meant
	examples           []*ddqv1.Task
	matched
}

// examplesShown is how many of them are named before something is done.
const examplesShown = 5

// count counts them by reading them; very many of a whole topic as the store does.
func (s *section) count(ctx context.Context, form url.Values) (*bulk, error) {
	topic, err := frame.Required(form, "topic")
	if err != nil {
		return nil, err
	}
	filter, err := deadFilter(form)
	if err != nil {
		return nil, err
	}
	b := &bulk{topic: topic, reason: form.Get("reason"), err: form.Get("error")}
	if b.reason == "" && b.err == "" {
		all, err := s.queue.CountTasks(ctx, &ddqv1.CountTasksRequest{Topic: topic})
		if b.count = all.GetDead(); err != nil || b.count > mostCounted {
			return b, err
		}
		b.count = 0
	}
	r := &ddqv1.ListDeadLettersRequest{Topic: topic, Filter: filter, PageSize: countPage}
	return b, b.read(func(token string) (int, string, error) {
		r.PageToken = token
		list, err := s.admin.ListDeadLetters(ctx, r)
		b.examples = append(b.examples, list.GetTasks()[:min(len(list.GetTasks()), examplesShown-len(b.examples))]...)
		return len(list.GetTasks()), list.GetNextPageToken(), err
	})
}

// countDead asks whether all of them are meant.
func (s *section) countDead(ctx context.Context, form url.Values) (frame.View, error) {
	b, err := s.count(ctx, form)
	if err != nil {
		return frame.View{}, err
	}
	if b.group, err = frame.Number(form, "group"); err != nil {
		return frame.View{}, err
	}
	return b.view(), nil
}

// agreed returns a question unless what a form is about is about as much as the visitor was told.
func (s *section) agreed(ctx context.Context, form url.Values) error {
	told, err := frame.Number(form, "count")
	if err != nil {
		return err
	}
	b, err := s.count(ctx, form)
	if err != nil {
		return err
	}
	if !b.agrees(told) {
		return &frame.Question{View: b.view()}
	}
	return nil
}

func (b *bulk) view() frame.View {
	return frame.View{Title: "All that the filter matches", Page: "overview", Body: b.body()}
}

func (b *bulk) pairs() []string {
	return []string{"topic", b.topic, "reason", b.reason, "error", b.err}
}

func (b *bulk) body() g.Node {
	return g.Group{
		h.P(frame.Anchor("Dead letters of "+frame.Cut(b.topic), "dead", b.pairs()...)),
		g.If(b.refused != "", frame.Alert(b.refused)),
		h.P(g.Text(b.text("dead letter", "dead letters"))),
		g.If(b.group > 0 && b.count > b.group, frame.Warning("The group had "+frame.CountText(b.group)+" of those that were examined. What is done is done to all that the filter matches.")),
		frame.Facts(frame.Fact("topic", g.Text(frame.Cut(b.topic))), frame.FactIf("reason", b.reason), frame.FactIf("error contains", b.err)),
		b.exampleTable(),
		g.If(b.count > 0, b.forms()),
	}
}

// exampleTable names the first that would be changed.
func (b *bulk) exampleTable() g.Node {
	if len(b.examples) == 0 {
		return nil
	}
	return frame.Table("Some of them", "Some of them", frame.Heads("id", "reason", "last error"), g.Map(b.examples, func(t *ddqv1.Task) g.Node {
		return h.Tr(frame.RowHead(frame.Anchor(frame.Cut(t.GetId()), "task", "topic", b.topic, "id", t.GetId())), frame.Cells(frame.StateText(t.GetDeadReason()), frame.Cut(t.GetLastError())))
	}))
}

// rateField is how many tasks an operation changes in a second.
func rateField() g.Node {
	return frame.Input("A second, at most", h.Name("rate"), h.Type("number"), h.Min("1"), h.Max("100000"))
}

func (b *bulk) forms() g.Node {
	which := g.Group{frame.Hidden(b.pairs()...), frame.Hidden("which", "all", "count", fmt.Sprint(b.count))}
	return g.Group{
		g.If(b.more, frame.Post("dead/dryrun", frame.Hidden(b.pairs()...), frame.Button("Count all of them first", h.Class("plain")))),
		frame.Post("dead/requeue", h.Class("column"), which, rateField(), frame.Button("Requeue all of them")),
		frame.Post("dead/delete", h.Class("column"), which, rateField(), frame.Sure("To delete all of them, type the name of the topic"), frame.Danger("Delete all of them")),
		h.P(h.Class("quiet"), g.Text("With a number a second, "), frame.Anchor("an operation", "operations", "topic", b.topic), g.Text(" does it, which goes on without this page.")),
	}
}
