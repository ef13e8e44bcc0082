package audits

import (
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// outcomes are those that records are listed by.
var outcomes = []ddqv1.AuditOutcome{
	ddqv1.AuditOutcome_AUDIT_OUTCOME_ASKED, ddqv1.AuditOutcome_AUDIT_OUTCOME_DONE, ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED, ddqv1.AuditOutcome_AUDIT_OUTCOME_REFUSED,
	ddqv1.AuditOutcome_AUDIT_OUTCOME_STARTED, ddqv1.AuditOutcome_AUDIT_OUTCOME_CUT,
}

// fields are those of the filter, in the order of the form.
var fields = []string{"caller", "method", "resource", "outcome", "from", "before"}

// serverFields are those of the form, by what the server says is wrong.
var serverFields = map[string]string{
	"caller": "caller", "method": "method", "resource": "resource", "outcome": "outcome", "from_unix_ms": "from", "before_unix_ms": "before",
}

// filter says which records are meant.
type filter struct {
	query url.Values // as it was written
	wrong frame.Mistakes
	asked *ddqv1.ListAuditRecordsRequest
}

func readFilter(query url.Values) *filter {
	f := &filter{query: query, wrong: frame.Mistakes{}}
	text := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	f.asked = &ddqv1.ListAuditRecordsRequest{
		Caller: text("caller"), Method: text("method"), Resource: text("resource"), PageSize: frame.PageSize, PageToken: query.Get("page"),
		FromUnixMs: f.wrong.Instant("from", query.Get("from")), BeforeUnixMs: f.wrong.Instant("before", query.Get("before")),
	}
	f.asked.Outcome, _ = frame.State(f.wrong, "outcome", query.Get("outcome"), outcomes)
	if f.wrong["from"] == "" && f.asked.BeforeUnixMs != 0 && f.asked.BeforeUnixMs <= f.asked.FromUnixMs {
		f.wrong.Add("before", "This is not after where the range begins.")
	}
	return f
}

// pairs are what was asked for, for links.
func (f *filter) pairs() (all []string) {
	for _, name := range fields {
		all = append(all, name, f.query.Get(name))
	}
	return all
}

// form is where the filter is written. Its rarer fields are seen where one of them is set.
func (f *filter) form() g.Node {
	input := func(label, name string, attributes ...g.Node) g.Node {
		return f.wrong.Input(label, name, h.Value(f.query.Get(name)), g.Group(attributes))
	}
	rare := slices.ContainsFunc(fields[4:], func(name string) bool { return f.query.Get(name) != "" })
	return frame.Filter("audit",
		input("Who", "caller", h.Placeholder("token:ops"), h.MaxLength("300"), frame.AsTyped()),
		input("What", "method", h.Placeholder("DeleteTopic"), h.MaxLength("200"), frame.AsTyped()),
		input("About", "resource", h.Placeholder("mail"), h.MaxLength("300"), frame.AsTyped()),
		frame.Choice(f.wrong, "Outcome", "outcome", "any", outcomes, f.query.Get("outcome")),
		h.Details(g.If(rare, g.Attr("open")), h.Summary(g.Text("Times")), h.Div(h.Class("filter"),
			input("From (UTC)", "from", h.Type("datetime-local"), h.Step("1")), input("Before (UTC)", "before", h.Type("datetime-local"), h.Step("1")))))
}
