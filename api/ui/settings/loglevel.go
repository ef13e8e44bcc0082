package settings

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// logLevels are those that a node can be given for a while.
var logLevels = []ddqv1.LogLevel{
	ddqv1.LogLevel_LOG_LEVEL_DEBUG, ddqv1.LogLevel_LOG_LEVEL_INFO, ddqv1.LogLevel_LOG_LEVEL_WARN, ddqv1.LogLevel_LOG_LEVEL_ERROR,
}

// logFields are those of the form, by what the server says is wrong.
var logFields = map[string]string{"name": "node", "level": "level", "topic": "topic", "for_ms": "for"}

// logPage is where a node is made to log more or less for a while.
type logPage struct {
	form  url.Values // as it was written
	wrong frame.Mistakes
	nodes []*ddqv1.Node // with what they log
	did   string        // what was done; empty: nothing yet
	until *timestamppb.Timestamp
}

func newLogPage(ctx context.Context, form url.Values) (*logPage, error) {
	if !frame.Who(ctx).Fleet() {
		return nil, status.Error(codes.PermissionDenied, "what nodes log is changed by who may administer the fleet")
	}
	return &logPage{form: form, wrong: frame.Mistakes{}}, nil
}

func (s *section) logLevel(ctx context.Context, query url.Values) (frame.View, error) {
	p, err := newLogPage(ctx, query)
	if err != nil {
		return frame.View{}, err
	}
	return s.logView(ctx, p, http.StatusOK)
}

// setLogLevel is answered with until when a node logs as it was asked to.
func (s *section) setLogLevel(ctx context.Context, form url.Values) (frame.View, error) {
	p, err := newLogPage(ctx, form)
	if err != nil {
		return frame.View{}, err
	}
	r := &ddqv1.SetLogLevelRequest{Name: form.Get("node"), Topic: strings.TrimSpace(form.Get("topic")), ForMs: p.length()}
	r.Level, _ = frame.State(p.wrong, "level", form.Get("level"), logLevels)
	if r.Name == "" {
		p.wrong.Add("node", "This is about a node.")
	}
	if len(p.wrong) > 0 {
		return s.logView(ctx, p, p.wrong.Code())
	}
	set, err := s.admin.SetLogLevel(ctx, r)
	if status.Code(err) == codes.NotFound || status.Code(err) == codes.InvalidArgument {
		if !p.wrong.Take(err, logFields) {
			p.wrong.Add("node", status.Convert(err).Message())
		}
		return s.logView(ctx, p, p.wrong.Code())
	}
	if err != nil {
		return frame.View{}, err
	}
	p.say(r, set.GetUntilUnixMs())
	return s.logView(ctx, p, http.StatusOK)
}

// length is for how long it lasts, in milliseconds; 0: as the server does without.
func (p *logPage) length() int64 {
	text := strings.TrimSpace(p.form.Get("for"))
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > 24*time.Hour {
		p.wrong.Add("for", "This is such as 5m or 24h, which is the most.")
	}
	return d.Milliseconds()
}

func (p *logPage) say(r *ddqv1.SetLogLevelRequest, until int64) {
	p.did = "Node " + frame.Cut(r.GetName()) + " logs "
	if r.GetTopic() != "" {
		p.did += "what happens to tasks of " + frame.Cut(r.GetTopic()) + " "
	}
	if until == 0 {
		p.did += "as it was configured."
		return
	}
	p.did += "at " + frame.StateText(r.GetLevel())
	p.until = timestamppb.New(time.UnixMilli(until))
}

// logView shows the page with what nodes log by now.
func (s *section) logView(ctx context.Context, p *logPage, code int) (frame.View, error) {
	list, err := s.admin.ListNodes(ctx, &ddqv1.ListNodesRequest{})
	if err != nil {
		return frame.View{}, err
	}
	p.nodes = list.GetNodes()
	return frame.View{Title: "What nodes log", Page: "settings", Code: code, Body: p.body()}, nil
}

func (p *logPage) body() g.Node {
	did := g.Group{g.Text(p.did)}
	if p.until != nil {
		did = append(did, g.Text(" until "), frame.Exact(p.until), g.Text("."))
	}
	return g.Group{
		h.P(frame.Anchor("Settings", "settings")),
		g.If(p.did != "", h.P(h.Class("warning"), h.Role("status"), did)),
		h.P(g.Text("A node logs more or less for a while, and then as it was configured. Of a topic, it logs each thing that happens to a task.")),
		frame.Post("loglevel", h.Class("column"), p.node(),
			frame.Choice(p.wrong, "Level", "level", "as configured", logLevels, p.form.Get("level")),
			p.wrong.Input("Only of the topic", "topic", h.Value(p.form.Get("topic")), h.MaxLength("200"), frame.AsTyped()),
			p.wrong.Input("For", "for", h.Value(p.form.Get("for")), h.Placeholder("5m"), h.MaxLength("20"), frame.AsTyped()),
			frame.Button("Change it")),
		h.H2(g.Text("What they log now")),
		frame.Table("What nodes log now", "", frame.Heads("node", "logs"), g.Map(p.nodes[:min(len(p.nodes), frame.PageSize)], func(n *ddqv1.Node) g.Node {
			return h.Tr(frame.RowHead(g.Text(frame.Cut(n.GetName()))), frame.Logs(n.GetLogs()))
		})),
	}
}

// node is which one it is about. A fleet of many is typed.
func (p *logPage) node() g.Node {
	name := p.form.Get("node")
	if name == "" && len(p.nodes) == 1 {
		name = p.nodes[0].GetName()
	}
	return p.wrong.Input("Node", "node", h.Value(name), h.Required(), h.MaxLength("128"), frame.AsTyped())
}
