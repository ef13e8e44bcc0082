package frame

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// maxKept bounds a form that is kept while its sender logs in.
const maxKept = 64 << 10

// kept is a form that came after its login had ended. The page that asks for the login keeps it, and
// nothing else does.
type kept struct {
	path   string // of the action; empty: there is none
	fields url.Values
}

// keep reads the form of a request; none is kept that is too large.
func keep(w http.ResponseWriter, r *http.Request) kept {
	r.Body = http.MaxBytesReader(w, r.Body, maxKept)
	if err := r.ParseForm(); err != nil {
		return kept{}
	}
	return kept{r.URL.Path, r.PostForm}
}

// keptOf reads what the login form has kept.
func keptOf(login url.Values) kept {
	path := login.Get("path")
	fields, err := url.ParseQuery(login.Get("form"))
	if err != nil || path == "" || ownPath(path) != path || strings.Contains(path, "?") {
		return kept{}
	}
	return kept{path, fields}
}

// hidden is the form in that of the login.
func (k kept) hidden() g.Node {
	return g.If(k.path != "", Hidden("path", k.path, "form", k.fields.Encode()))
}

// body is the form once more, to be sent.
func (k kept) body() g.Node {
	var shown, fields g.Group
	for _, name := range slices.Sorted(maps.Keys(k.fields)) {
		for _, value := range k.fields[name] {
			fields, shown = append(fields, Hidden(name, value)), append(shown, Fact(Cut(name), g.Text(Cut(value))))
		}
	}
	return g.Group{
		h.P(g.Text("You are logged in again. What you sent before was not done; here it is:")),
		Facts(shown),
		Post(strings.TrimPrefix(k.path, Prefix), h.Class("column"), fields, Button("Send it now")),
		h.P(Anchor("Leave it, and go to all topics", "")),
	}
}
