package frame

import (
	"cmp"
	"context"
	"embed"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Prefix is where all paths of the pages begin, as long as nobody mounts them elsewhere.
const Prefix = "/ui/"

// PageSize is how many rows a page of a list has.
const PageSize = 100

// patience is how long a page waits for the server.
const patience = 3 * time.Second

// maxQuestion bounds a form that is answered with a page.
const maxQuestion = 64 << 10

//go:embed static
var files embed.FS

// Frame is what all pages have in common. It owns no goroutine.
type Frame struct {
	access  ddqv1.AccessServiceClient
	logins  Logins
	mux     *http.ServeMux
	packed  http.Handler     // mux, whose answers are compressed
	pages   map[string]Maker // by their paths under Prefix
	mount   mount
	lives   *lives
	closers []func() // of sections
	log     *slog.Logger
}

// New returns the pages of sections, whose visitors the server at the other end of conn knows.
func New(conn grpc.ClientConnInterface, logins Logins, log *slog.Logger, sections ...Section) *Frame {
	f := &Frame{
		access: ddqv1.NewAccessServiceClient(conn), logins: logins, mux: http.NewServeMux(),
		mount: mount{prefix: Prefix}, pages: make(map[string]Maker), lives: newLives(), log: log,
	}
	for _, s := range sections {
		f.open(s)
	}
	f.own()
	f.packed = pack(f.mux)
	return f
}

// own serves what belongs to no section.
func (f *Frame) own() {
	f.mux.Handle("GET "+Prefix+"static/", http.StripPrefix(Prefix, http.FileServerFS(files)))
	f.mux.HandleFunc("GET "+Prefix+"login", f.loginPage)
	f.mux.HandleFunc("POST "+Prefix+"login", f.login)
	f.mux.HandleFunc("POST "+Prefix+"logout", f.logout)
	f.mux.Handle("GET "+Prefix+"live", f.within(f.live))
	f.mux.Handle("GET "+Prefix, f.page(func(context.Context, url.Values) (View, error) {
		return View{}, status.Error(codes.NotFound, "there is no such page")
	}))
}

// Close ends what keeps pages up to date: no server can shut down before.
func (f *Frame) Close() {
	f.lives.close()
	for _, c := range f.closers {
		c()
	}
}

// ServeHTTP answers a request under the prefix of the pages.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	within := f.mount.inside(r)
	if within == nil {
		http.NotFound(w, r)
		return
	}
	f.packed.ServeHTTP(w, within)
}

// lead answers with where the browser goes next.
func (f *Frame) lead(w http.ResponseWriter, r *http.Request, address string) {
	http.Redirect(w, r, f.mount.outside(address), http.StatusSeeOther)
}

// View is a page before it is text.
type View struct {
	Title  string
	Page   string // of the pages in the menu, which one it is
	Code   int    // of the answer; 0: it is what was asked for
	Live   bool   // it is kept up to date while it is looked at; its Body is a group of parts
	Notice string // of what was just done; set by the frame
	Who    *Visitor
	Body   g.Node

	stream string // address of what keeps it up to date; set by the frame
}

func (f *Frame) page(make Maker) http.Handler {
	return f.within(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		v, err := make(ctx, r.URL.Query())
		switch {
		case badCursor(err) && r.URL.Query().Has("page"):
			f.lead(w, r, firstPage(r.URL))
			return
		case err != nil:
			f.fail(w, r, err)
			return
		}
		v.Notice = notices[r.URL.Query().Get("did")]
		if v.Live {
			v.stream = streamOf(r.URL)
		}
		f.write(w, r, cmp.Or(v.Code, http.StatusOK), &v)
	})
}

// badCursor reports whether a list has no page of this token: it is of another list, or none.
func badCursor(err error) bool {
	return Reason(err) == "BAD_CURSOR"
}

// firstPage is the address of the first page of a list, with the notice that this is not what was asked for.
func firstPage(page *url.URL) string {
	q := page.Query()
	q.Del("page")
	q.Set("did", "first")
	return page.Path + "?" + q.Encode()
}

// answer is a page that a form is answered with: no address leads to it.
func (f *Frame) answer(make Maker) http.Handler {
	return f.within(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxQuestion)
		if err := r.ParseForm(); err != nil {
			f.fail(w, r, status.Error(codes.InvalidArgument, "the form cannot be read"))
			return
		}
		v, err := make(ctx, r.PostForm)
		if err != nil {
			f.fail(w, r, err)
			return
		}
		f.write(w, r, cmp.Or(v.Code, http.StatusOK), &v)
	})
}

// write writes a page as a whole, or that it could not be made.
func (f *Frame) write(w http.ResponseWriter, r *http.Request, code int, v *View) {
	v.Who = Who(r.Context())
	var text strings.Builder
	if err := document(v).Render(&text); err != nil {
		f.log.ErrorContext(r.Context(), "a page cannot be made", "page", r.URL.Path, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, f.mount.text(text.String())) // whoever asked may be gone
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
	f.write(w, r, code, &View{Title: http.StatusText(code), Body: failure(s.Message())})
}
