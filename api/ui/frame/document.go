package frame

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// menu are the pages that every page leads to.
var menu = []struct{ page, path, name, keys string }{
	{"overview", "", "Topics", "go gt"},
	{"schedules", "schedules", "Schedules", "gs"},
	{"workflows", "workflows", "Workflows", "gf"},
	{"workers", "workers", "Workers", "gw"},
	{"nodes", "nodes", "Nodes", "gn"},
	{"settings", "settings", "Settings", ""},
}

// document is a whole page: what all of them have in common, around the body.
func document(v *View) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(g.Text(v.Title+" – ddq")),
			h.Link(h.Rel("stylesheet"), h.Href(Prefix+"static/ui.css")),
			h.Link(h.Rel("icon"), h.Href(Prefix+"static/ddq.svg")),
			h.Script(h.Type("module"), h.Src(Prefix+"static/ui.js")),
		),
		h.Body(
			h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to content")),
			header(v),
			h.Main(h.ID("main"), h.TabIndex("-1"), g.If(v.stream != "", h.Data("live", v.stream)), h.H1(g.Text(v.Title)), v.main()),
			h.Footer(h.P(h.ID("stale"), h.Role("status"))),
		),
	))
}

func header(v *View) g.Node {
	nav := g.Group{h.Aria("label", "Pages"), h.A(h.Class("brand"), h.Href(Prefix), g.Text("ddq"))}
	for _, m := range menu {
		nav = append(nav, h.A(h.Href(Prefix+m.path), g.If(v.Page == m.page, h.Aria("current", "page")), g.If(m.keys != "", Key(m.keys)), g.Text(m.name)))
	}
	if v.Who.LoggedIn {
		nav = append(nav, Post("logout", Quiet(v.Who.known()), g.Text(" "), Button("Log out", h.Class("plain"))))
	}
	return h.Header(h.Nav(nav), g.If(v.Notice != "", h.P(h.Class("notice"), h.Role("status"), g.Text(v.Notice))))
}

// failure is what is on a page that could not be made.
func failure(why string) g.Node {
	return g.Group{
		Alert(why),
		h.P(Anchor("All topics", "")),
	}
}
