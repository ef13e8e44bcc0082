package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// Port is what the HTTP port of a node answers: the API, and the few paths that are
// added to it. It owns no goroutine.
type Port struct {
	guard *guard
	may   func(ctx context.Context, authorization []string, call string) error // nil: everything
	api   http.Handler                                                         // nil: not served here
	open  atomic.Bool                                                          // the server takes calls
	paths map[string]path
	pages http.Handler // nil: not served here
	under string       // the prefix of pages, with a slash at its end
	spans Spans        // nil: there are none
}

type path struct {
	rule    Rule
	handler http.Handler
}

// NewPort serves nothing yet. Routes are added before the first request.
func NewPort(config Config, log *slog.Logger) (*Port, error) {
	g, err := newGuard(config, log)
	if err != nil {
		return nil, err
	}
	return &Port{guard: g, may: config.Authorize, paths: make(map[string]path)}, nil
}

// ServeAPI adds the API of the server at the other end of conn, which is the channel of
// a server.Server. Until Open it is unavailable.
func (p *Port) ServeAPI(conn grpc.ClientConnInterface) (err error) {
	p.api, err = newAPI(conn, p.spans)
	return err
}

// ServePages adds pages for people, at paths under a prefix such as /ui; the root leads there. They ask themselves who wants them. What
// changes something is taken from these pages only: Config.Origins are for the API, whose callers
// a browser does not name by itself as it does with cookies.
func (p *Port) ServePages(prefix string, h http.Handler) { p.pages, p.under = h, prefix+"/" }

// Open says that the server takes calls.
func (p *Port) Open() { p.open.Store(true) }

// Route adds a path that is read only. There is no route without a rule.
func (p *Port) Route(at string, rule Rule, h http.Handler) error {
	if !rule.valid() {
		return fmt.Errorf("%s has no rule", at)
	}
	p.paths[at] = path{rule, h}
	return nil
}

// ServeHTTP answers a request. Paths are compared as they are: none is cleaned into
// another one.
func (p *Port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limitTime(w, r)
	p.guard.serve(w, r, p.dispatch)
}

var readMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions}

func (p *Port) dispatch(w http.ResponseWriter, r *http.Request) {
	if p.api != nil && strings.HasPrefix(r.URL.Path, Prefix) {
		if !p.open.Load() {
			starting().write(w, r)
			return
		}
		p.api.ServeHTTP(w, r)
		return
	}
	if p.pages != nil && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, p.under) || r.URL.Path+"/" == p.under) {
		p.page(w, r)
		return
	}
	to, ok := p.paths[r.URL.Path]
	switch {
	case !ok:
		noRoute(nil).write(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", strings.Join(readMethods, ", "))
		w.WriteHeader(http.StatusNoContent)
	case !slices.Contains(readMethods, r.Method):
		w.Header().Set("Allow", strings.Join(readMethods, ", "))
		noRoute(readMethods).write(w, r)
	default:
		if p.may != nil && !to.rule.Public {
			if err := p.may(r.Context(), r.Header.Values("Authorization"), to.rule.Call); err != nil {
				problemOf(err).write(w, r)
				return
			}
		}
		to.handler.ServeHTTP(w, r)
	}
}

var pageMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost}

func (p *Port) page(w http.ResponseWriter, r *http.Request) {
	switch {
	case !slices.Contains(pageMethods, r.Method):
		w.Header().Set("Allow", strings.Join(pageMethods, ", "))
		noRoute(pageMethods).write(w, r)
	case !strings.HasPrefix(r.URL.Path, p.under):
		http.Redirect(w, r, p.under, http.StatusFound)
	case p.guard.own.Check(r) != nil:
		crossOrigin().write(w, r)
	default:
		p.pages.ServeHTTP(w, r)
	}
}

func starting() *problem {
	return &problem{
		Status: http.StatusServiceUnavailable, Code: codeNames[codes.Unavailable], Reason: "STARTING",
		Detail: "node is starting", RetryAfter: "1000",
	}
}

// noRoute is the answer where nothing is, or nothing for this method.
func noRoute(allowed []string) *problem {
	if len(allowed) > 0 {
		p := refuse(http.StatusMethodNotAllowed, "NO_ROUTE", "", "this path has other methods: "+strings.Join(allowed, ", "))
		p.Code = codeNames[codes.Unimplemented]
		return p
	}
	p := refuse(http.StatusNotFound, "NO_ROUTE", "", "there is nothing at this path")
	p.Code = codeNames[codes.NotFound]
	return p
}
