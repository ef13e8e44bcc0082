package settings

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// settingsPage is who looks, and the tokens that they may change.
type settingsPage struct {
	Server *ddqv1.DescribeServerResponse
	Me     *ddqv1.WhoAmIResponse
	Now    time.Time
	Tokens []*ddqv1.Token
	May    bool // make tokens

	Namespaces []*ddqv1.Namespace // for who may change them
	Fleet      bool               // change what nodes log
	Audits     bool               // read what was done
}

func (s *section) settings(ctx context.Context, _ url.Values) (frame.View, error) {
	server, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	me, err := s.access.WhoAmI(ctx, &ddqv1.WhoAmIRequest{})
	if err != nil {
		return frame.View{}, err
	}
	p := settingsPage{Server: server, Me: me, Now: now, May: frame.Who(ctx).Tokens(), Audits: frame.Who(ctx).Audits()}
	if p.May {
		list, err := s.access.ListTokens(ctx, &ddqv1.ListTokensRequest{})
		if err != nil {
			return frame.View{}, err
		}
		p.Tokens = list.GetTokens()
	}
	if frame.Who(ctx).Fleet() {
		list, err := s.access.ListNamespaces(ctx, &ddqv1.ListNamespacesRequest{})
		if err != nil {
			return frame.View{}, err
		}
		p.Namespaces, p.Fleet = list.GetNamespaces(), true
	}
	return frame.View{Title: "Settings", Page: "settings", Body: p.body()}, nil
}

func (p *settingsPage) body() g.Node {
	return g.Group{
		h.H2(g.Text("You")), p.you(),
		h.H2(g.Text("This browser")), browser(),
		h.H2(g.Text("Server")), p.server(),
		g.If(p.Fleet, h.P(frame.Anchor("What nodes log", "loglevel"))),
		g.If(p.Audits, h.P(frame.Anchor("What was done", "audit"))),
		g.If(len(p.Namespaces) > 0, g.Group{h.H2(g.Text("Namespaces")), p.namespaces()}),
		g.If(p.May, g.Group{h.H2(g.Text("Tokens")), p.tokens(), create()}),
	}
}

func (p *settingsPage) you() g.Node {
	facts := g.Group{
		frame.Fact("name", g.Text(frame.Cut(p.Me.GetName())+" "), frame.Quiet(p.Me.GetKind())),
		frame.FactIf("namespace", p.Me.GetNamespace()),
		frame.Fact("may", g.Text(grantsText(p.Me.GetGrants()))),
		frame.Fact("in a second", g.Text(boundsText(p.Me))),
	}
	if until := p.Me.GetExpireTime(); until != nil {
		facts = append(facts, frame.Fact("until", frame.Exact(until), g.Text(", "+frame.AwayText(until, p.Now))))
	}
	return frame.Facts(facts)
}

func (p *settingsPage) server() g.Node {
	callers := "are not asked who they are"
	if p.Me.GetAuthentication() {
		callers = "have to say who they are"
	}
	return frame.Facts(
		frame.Fact("version", g.Text(p.Server.GetVersion())),
		frame.Fact("node", g.Text(frame.Cut(p.Server.GetNode())+", up for "+frame.SpanText(p.Server.GetUptimeMs()))),
		frame.Fact("store", g.Text(fmt.Sprintf("%s (%s)", p.Server.GetStore(), p.Server.GetDurability()))),
		frame.Fact("callers", g.Text(callers)),
	)
}

func (p *settingsPage) tokens() g.Node {
	if len(p.Tokens) == 0 {
		return h.P(g.Text("There are none."))
	}
	return g.Group{
		frame.Table("Tokens", "", frame.Heads("name", "id", "may", "in a second", "made", "expires", "actions"), g.Map(p.Tokens, p.row)),
		h.P(h.Class("quiet"), g.Text("A token that is rotated counts for another day.")),
	}
}

func (p *settingsPage) row(t *ddqv1.Token) g.Node {
	expires := "never"
	if at := t.GetExpireTime(); at != nil {
		expires = frame.AwayText(at, p.Now)
	}
	id, known := frame.Hidden("id", t.GetId()), frame.Cut(t.GetName())+" "+t.GetId()
	return h.Tr(
		frame.RowHead(g.Text(frame.Cut(t.GetName()))), h.Td(h.Code(g.Text(t.GetId()))),
		frame.Cells(grantsText(t.GetGrants()), boundsText(t)),
		h.Td(g.Text(frame.AwayText(t.GetCreateTime(), p.Now)+" "), frame.Quiet(strings.TrimSpace("by "+frame.Cut(t.GetCreatedBy())+" "+t.GetCreatedById()))),
		frame.Cells(expires),
		h.Td(h.Class("acts"),
			g.If(t.GetSuccessor() == "", frame.Post("tokens/rotate", id, frame.Button("Rotate", h.Class("plain"), h.Aria("label", "Rotate "+known)))),
			frame.Fold("Revoke", frame.Post("tokens/revoke", id, frame.Danger("Revoke it", h.Aria("label", "Revoke it: "+known))))),
	)
}

// browser is how pages are in this browser. The script keeps it there.
func browser() g.Node {
	box := func(name, usual, text string) g.Node {
		return h.P(h.Label(h.Class("tick"), h.Input(h.Type("checkbox"), h.Disabled(), h.Data("setting", name), h.Data("usual", usual), g.If(usual == "on", h.Checked())), g.Text(text)))
	}
	return g.Group{
		box("keys", "on", "Keys: ? shows what each of them does"),
		box("local", "off", "Exact times in the zone of this browser, not in UTC"),
		h.P(h.Class("quiet"), g.Text("These are kept in the browser, until you log out.")),
	}
}

// create is a form that makes a token.
func create() g.Node {
	code := func(text string) g.Node { return h.Code(g.Text(text)) }
	return frame.Fold("Make a token", h.Class("act"), frame.Post("tokens/create", h.Class("column"),
		frame.Input("Name", h.Name("name"), h.Required(), h.MaxLength("128"), h.AutoComplete("off")),
		frame.Input("What it may do", h.Name("grants"), h.Required(), h.Value("producer"), h.MaxLength("1000"), frame.AsTyped()),
		h.P(h.Class("quiet"), g.Text("Roles or verbs, and topics: "), code("producer:mail*"), g.Text(", "), code("worker:mail"), g.Text(", "), code("viewer"), g.Text(", "), code("operator"),
			g.Text("; several with spaces between them.")),
		frame.Input("Days", h.Name("days"), h.Type("number"), h.Min("1"), h.Max("3650"), h.Value("90"), h.Required()),
		frame.Button("Make it")))
}

// grantsText is what grants allow, in a line.
func grantsText(grants []*ddqv1.Grant) string {
	all := make([]string, len(grants))
	for i, grant := range grants {
		all[i] = strings.Join(grant.GetVerbs(), ", ") + " on " + frame.Cut(grant.GetTopics())
	}
	return strings.Join(all, "; ")
}

// bounded is a token, or who has one.
type bounded interface {
	GetCallsPerSecond() int32
	GetBytesPerSecond() int32
}

// boundsText is how much it may do in a second, at each node.
func boundsText(of bounded) string {
	var all []string
	if n := of.GetCallsPerSecond(); n > 0 {
		all = append(all, frame.CountText(int64(n))+" calls")
	}
	if n := of.GetBytesPerSecond(); n > 0 {
		all = append(all, frame.CountText(int64(n))+" bytes of payloads")
	}
	if len(all) == 0 {
		return "no bound"
	}
	return strings.Join(all, ", ")
}
