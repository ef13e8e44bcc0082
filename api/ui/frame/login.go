package frame

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Logins exchange a token for a key, which is kept in a cookie of one browser. Errors are gRPC
// statuses.
type Logins interface {
	// On reports whether visitors have to log in.
	On() bool
	// Login returns a key, and when the token expires; zero: never.
	Login(ctx context.Context, token string) (key string, expires time.Time, err error)
	Logout(ctx context.Context, key string) error
	// As returns a context of calls that are made by whom a key stands for.
	As(ctx context.Context, key string) (context.Context, error)
}

// Cookies. The first is bound to the host by its name; browsers take it over TLS only.
const (
	cookieTLS   = "__Host-ddq"
	cookiePlain = "ddq"

	// maxLoginForm bounds what somebody sends who is not known: a token, and a form that was kept, of
	// which each byte may be encoded once more.
	maxLoginForm = 4<<10 + 3*maxKept
)

func (f *Frame) cookieFor(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{Name: cookiePlain, Value: value, Path: f.mount.prefix, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if r.TLS != nil {
		c.Name, c.Path, c.Secure = cookieTLS, "/", true
	}
	return c
}

// keyOf is the key that a request brings; empty when it brings none.
func (f *Frame) keyOf(r *http.Request) string {
	if c, err := r.Cookie(f.cookieFor(r, "").Name); err == nil {
		return c.Value
	}
	return ""
}

// loginForm is the page of somebody who is not known.
type loginForm struct {
	Next  string // where they wanted to go
	Kept  kept   // what they wanted to do
	Error string
}

func (l loginForm) body() g.Node {
	return g.Group{
		g.If(l.Error != "", Alert(l.Error)),
		Post("login", h.Class("column"), Hidden("next", l.Next), l.Kept.hidden(),
			h.Label(g.Attr("hidden"), g.Text("Name "), h.Input(h.Name("user"), h.Value("token"), h.AutoComplete("username"))),
			Input("Token", h.Type("password"), h.Name("token"), h.Required(), h.AutoComplete("current-password"), g.Attr("spellcheck", "false"), h.MaxLength("200")),
			Button("Log in")),
		h.P(h.Class("quiet"), g.Text("A token is what commands and programs call with, too. An operator makes one with "), h.Code(g.Text("ddq token create")),
			g.Text(". It is exchanged at once and not kept in the browser; the login ends with the token, after half an hour without a look, and after twelve hours.")),
	}
}

// strange answers a request of somebody who is not known. Whoever wanted to look at a page is
// asked to log in, and comes back to it.
func (f *Frame) strange(w http.ResponseWriter, r *http.Request, err error) {
	if status.Code(err) != codes.Unauthenticated {
		f.fail(w, r, err)
		return
	}
	form := loginForm{Next: Prefix}
	if r.Method == http.MethodGet {
		form.Next = r.URL.RequestURI()
	} else {
		form.Error = "Nothing was done: the login has ended."
		if form.Kept = keep(w, r); form.Kept.path != "" {
			form.Error += " What you sent is kept until you have logged in."
		}
	}
	f.askWho(w, r, http.StatusUnauthorized, form)
}

func (f *Frame) askWho(w http.ResponseWriter, r *http.Request, code int, form loginForm) {
	f.write(w, r, code, &View{Title: "Log in", Body: form.body()})
}

func (f *Frame) loginPage(w http.ResponseWriter, r *http.Request) {
	if !f.logins.On() {
		f.lead(w, r, Prefix)
		return
	}
	f.askWho(w, r, http.StatusOK, loginForm{Next: ownPath(r.URL.Query().Get("next"))})
}

// ownPath is a path if it is that of a page here, else that of the first page.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || strings.ContainsAny(next, "\\\r\n") || !strings.HasPrefix(path.Clean(u.Path)+"/", Prefix) {
		return Prefix
	}
	return next
}

func (f *Frame) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	form := loginForm{Next: ownPath(r.PostFormValue("next"))}
	form.Kept = keptOf(r.PostForm)
	key, expires, err := f.logins.Login(r.Context(), strings.TrimSpace(r.PostFormValue("token")))
	switch {
	case status.Code(err) == codes.ResourceExhausted:
		form.Error = "Too many wrong tokens came from this address. Wait a moment."
		f.askWho(w, r, http.StatusTooManyRequests, form)
		return
	case status.Code(err) == codes.Unauthenticated:
		form.Error = "This token does not count: it is not one of this fleet, or it has expired or was revoked."
		f.askWho(w, r, http.StatusUnauthorized, form)
		return
	case err != nil:
		f.fail(w, r, err)
		return
	}
	if old := f.keyOf(r); old != "" { // nobody goes on with what was there before
		_ = f.logins.Logout(r.Context(), old)
	}
	c := f.cookieFor(r, key)
	c.Expires = expires
	http.SetCookie(w, c)
	if form.Kept.path != "" {
		f.write(w, r, http.StatusOK, &View{Title: "Logged in", Body: form.Kept.body()})
		return
	}
	f.lead(w, r, form.Next)
}

func (f *Frame) logout(w http.ResponseWriter, r *http.Request) {
	if err := f.logins.Logout(r.Context(), f.keyOf(r)); err != nil {
		f.fail(w, r, err)
		return
	}
	c := f.cookieFor(r, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	f.lead(w, r, Prefix+"login")
}
