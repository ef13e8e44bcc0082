package tasks

import (
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// filterFields are the fields of a filter of tasks, in the order of the form.
var filterFields = []string{"state", "id", "attribute", "due_from", "due_before", "created_from", "created_before"}

// serverFields are those of the form, by what the server says is wrong.
var serverFields = map[string]string{
	"filter.states": "state", "filter.id_prefix": "id", "filter.attributes": "attribute", "filter.due_from_unix_ms": "due_from", "filter.due_before_unix_ms": "due_before",
	"filter.created_from_unix_ms": "created_from", "filter.created_before_unix_ms": "created_before",
}

// filter says which tasks of a topic are meant.
type filter struct {
	topic string
	query url.Values // as it was written
	wrong frame.Mistakes
	tasks *ddqv1.TaskFilter
}

func readFilter(query url.Values) (*filter, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return nil, err
	}
	f := &filter{topic: topic, query: query, wrong: frame.Mistakes{}}
	at := func(name string) int64 { return f.wrong.Instant(name, query.Get(name)) }
	f.tasks = &ddqv1.TaskFilter{
		IdPrefix: query.Get("id"), Attributes: f.attributes(),
		DueFromUnixMs: at("due_from"), DueBeforeUnixMs: at("due_before"), CreatedFromUnixMs: at("created_from"), CreatedBeforeUnixMs: at("created_before"),
	}
	if state, chosen := frame.State(f.wrong, "state", query.Get("state"), states); chosen {
		f.tasks.States = []ddqv1.TaskState{state}
	}
	f.forward("due_from", "due_before", f.tasks.DueFromUnixMs, f.tasks.DueBeforeUnixMs)
	f.forward("created_from", "created_before", f.tasks.CreatedFromUnixMs, f.tasks.CreatedBeforeUnixMs)
	return f, nil
}

// forward says of a range that it runs backwards, at its end.
func (f *filter) forward(begin, end string, from, before int64) {
	if f.wrong[begin] == "" && before != 0 && before <= from {
		f.wrong.Add(end, "This is not after where the range begins.")
	}
}

// attributes reads key=value, key=beginning* or key.
func (f *filter) attributes() []*ddqv1.AttributeFilter {
	text := f.query.Get("attribute")
	if text == "" {
		return nil
	}
	key, value, given := strings.Cut(text, "=")
	a := &ddqv1.AttributeFilter{Key: key}
	switch beginning, open := strings.CutSuffix(value, "*"); {
	case key == "":
		f.wrong.Add("attribute", "An attribute is such as tenant=acme, tenant=ac* or tenant.")
	case open:
		a.Match = &ddqv1.AttributeFilter_Prefix{Prefix: beginning}
	case given:
		a.Match = &ddqv1.AttributeFilter_Equals{Equals: value}
	}
	return []*ddqv1.AttributeFilter{a}
}

// take reports whether err is about a field of the filter, where it is said then.
func (f *filter) take(err error) bool { return f.wrong.Take(err, serverFields) }

// pairs are what was asked for, for links and forms.
func (f *filter) pairs() []string {
	all := []string{"topic", f.topic}
	for _, name := range filterFields {
		all = append(all, name, f.query.Get(name))
	}
	return all
}

// narrow reports whether it is about less than all tasks.
func (f *filter) narrow() bool {
	return slices.ContainsFunc(filterFields, func(name string) bool { return f.query.Get(name) != "" })
}

// pending reports whether it is about tasks that wait, which alone are deleted and moved by a filter.
func (f *filter) pending() bool {
	return !slices.ContainsFunc(f.tasks.GetStates(), func(s ddqv1.TaskState) bool { return !slices.Contains(pendingStates, s) })
}

// form is where the filter is written. Its rarer fields are seen where one of them is set.
func (f *filter) form() g.Node {
	input := func(label, name string, attributes ...g.Node) g.Node {
		return f.wrong.Input(label, name, h.Value(f.query.Get(name)), g.Group(attributes))
	}
	instant := func(label, name string) g.Node {
		return input(label, name, h.Type("datetime-local"), h.Step("1"))
	}
	rare := slices.ContainsFunc(filterFields[3:], func(name string) bool { return f.query.Get(name) != "" })
	return frame.Filter("tasks", frame.Hidden("topic", f.topic),
		frame.Choice(f.wrong, "State", "state", "alive", states, f.query.Get("state")),
		input("Id begins with", "id", h.MaxLength("128"), frame.AsTyped()),
		input("Attribute", "attribute", h.Placeholder("key=value"), h.MaxLength("1100"), frame.AsTyped()),
		h.Details(g.If(rare, g.Attr("open")), h.Summary(g.Text("Times")), h.Div(h.Class("filter"),
			instant("Due from (UTC)", "due_from"), instant("Due before (UTC)", "due_before"), instant("Created from (UTC)", "created_from"), instant("Created before (UTC)", "created_before"))))
}
