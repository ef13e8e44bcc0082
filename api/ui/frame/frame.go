package frame

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Prefix is where all paths of the pages begin.
const Prefix = "/ui/"

// PageSize is how many rows a page of a list has.
const PageSize = 100

// patience is how long a page waits for the server.
const patience = 3 * time.Second

//go:embed templates static
var files embed.FS

// Frame is what all pages have in common. It owns no goroutine.
type Frame struct {
	access  ddqv1.AccessServiceClient
	logins  Logins
	refused *attempts
	pages   map[string]*template.Template
	mux     *http.ServeMux
	log     *slog.Logger
}

// New returns the pages of sections, whose visitors the server at the other end of conn knows.
func New(conn grpc.ClientConnInterface, logins Logins, log *slog.Logger, sections ...Section) (*Frame, error) {
	f := &Frame{
		access: ddqv1.NewAccessServiceClient(conn), logins: logins, refused: newAttempts(),
		pages: make(map[string]*template.Template), mux: http.NewServeMux(), log: log,
	}
	for _, s := range sections {
		if err := f.open(s); err != nil {
			return nil, err
		}
	}
	return f, f.own()
}

// own serves what belongs to no section.
func (f *Frame) own() error {
	for _, name := range []string{"failed", "login"} {
		if err := f.parse(files, name); err != nil {
			return err
		}
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return err
	}
	f.mux.Handle("GET "+Prefix+"static/", http.StripPrefix(Prefix+"static/", http.FileServerFS(static)))
	f.mux.HandleFunc("GET "+Prefix+"login", f.loginPage)
	f.mux.HandleFunc("POST "+Prefix+"login", f.login)
	f.mux.HandleFunc("POST "+Prefix+"logout", f.logout)
	f.mux.Handle("GET "+Prefix, f.page("failed", func(context.Context, url.Values) (View, error) {
		return View{}, status.Error(codes.NotFound, "there is no such page")
	}))
	return nil
}

func (f *Frame) parse(templates fs.FS, name string) error {
	t, err := template.New("").Funcs(words).Option("missingkey=error").ParseFS(files, "templates/layout.html")
	if err != nil {
		return err
	}
	f.pages[name], err = t.ParseFS(templates, "templates/"+name+".html")
	return err
}

// ServeHTTP answers a request under Prefix.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// View is a page before it is text.
type View struct {
	Title  string
	Page   string // of the pages in the menu, which one it is
	Live   bool   // it is fetched anew while it is looked at
	Notice string // of what was just done; set by the frame
	Who    *Visitor
	Body   any
}

func (f *Frame) page(name string, make Maker) http.Handler {
	return f.within(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		v, err := make(ctx, r.URL.Query())
		if err != nil {
			f.fail(w, r, err)
			return
		}
		v.Notice = notices[r.URL.Query().Get("did")]
		f.write(w, r, http.StatusOK, name, &v)
	})
}

// answer is a page that a form is answered with: no address leads to it.
func (f *Frame) answer(name string, make Maker) http.Handler {
	return f.within(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
		if err := r.ParseForm(); err != nil {
			f.fail(w, r, status.Error(codes.InvalidArgument, "the form cannot be read"))
			return
		}
		v, err := make(ctx, r.PostForm)
		if err != nil {
			f.fail(w, r, err)
			return
		}
		f.write(w, r, http.StatusOK, name, &v)
	})
}

// write writes a page as a whole, or that it could not be made.
func (f *Frame) write(w http.ResponseWriter, r *http.Request, code int, name string, v *View) {
	v.Who = Who(r.Context())
	var text bytes.Buffer
	if err := f.pages[name].ExecuteTemplate(&text, "layout", v); err != nil {
		f.log.ErrorContext(r.Context(), "a page cannot be made", "page", name, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes()) // whoever asked may be gone
}

// failure is what a page says that could not be made.
type failure struct {
	Code int
	Text string
}

var httpCodes = map[codes.Code]int{
	codes.NotFound: http.StatusNotFound, codes.InvalidArgument: http.StatusBadRequest, codes.OutOfRange: http.StatusBadRequest,
	codes.Aborted: http.StatusConflict, codes.AlreadyExists: http.StatusConflict, codes.FailedPrecondition: http.StatusConflict, codes.ResourceExhausted: http.StatusTooManyRequests,
	codes.PermissionDenied: http.StatusForbidden, codes.Unauthenticated: http.StatusUnauthorized,
	codes.Unavailable: http.StatusServiceUnavailable, codes.DeadlineExceeded: http.StatusServiceUnavailable,
}

func (f *Frame) fail(w http.ResponseWriter, r *http.Request, err error) {
	s := status.Convert(err)
	code := httpCodes[s.Code()]
	if code == 0 {
		code = http.StatusInternalServerError
	}
	f.write(w, r, code, "failed", &View{Title: http.StatusText(code), Body: failure{code, s.Message()}})
}
