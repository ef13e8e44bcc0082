package rest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/requestid"
)

// requestIDHeader names a request, in its answer, in the log and in problems.
const requestIDHeader = "Ddq-Request-Id"

// safeHeaders are on every answer. Nothing here is a page, so pages may do nothing with it.
// All answers share the values: they are replaced, never edited.
var safeHeaders = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"},
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Cache-Control":                {"no-store"},
}

// Config says who may come to the port beside those who need no permission.
type Config struct {
	// Hosts are names under which clients reach the port, besides the names of loopback
	// and the address that a connection came to. Ports do not matter.
	Hosts []string

	// Origins are those whose pages may call, such as https://app.example.com.
	Origins []string

	// Authorize says why who brings these headers may not make a call, or returns nil. It
	// is asked about paths beside the API, whose calls the server checks itself. Without
	// it everybody may.
	Authorize func(ctx context.Context, authorization []string, call string) error

	// Panicked is told of each request whose handler panicked. It may be nil.
	Panicked func()
}

// CheckOrigin says why an origin cannot be one of Config, or returns nil.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" || u.Host == "" || origin != "https://"+u.Host || strings.Contains(u.Host, "*") {
		return fmt.Errorf("an origin is https://host or https://host:port, not %q", origin)
	}
	return nil
}

// guard stands before every route of the port: a page in the browser of somebody who
// can reach the port must not use it, whether by its own name for the address (421) or
// by a request from another origin (403).
type guard struct {
	log      *slog.Logger
	hosts    map[string]bool
	origins  []string
	cross    *http.CrossOriginProtection
	own      *http.CrossOriginProtection // of pages: it trusts no origin
	panicked func()
}

func newGuard(config Config, log *slog.Logger) (*guard, error) {
	g := &guard{
		log: log, hosts: make(map[string]bool), origins: config.Origins,
		cross: http.NewCrossOriginProtection(), own: http.NewCrossOriginProtection(), panicked: config.Panicked,
	}
	if g.panicked == nil {
		g.panicked = func() {}
	}
	for _, host := range config.Hosts {
		g.hosts[strings.ToLower(strings.TrimSuffix(host, "."))] = true
	}
	for _, origin := range config.Origins {
		if err := CheckOrigin(origin); err != nil {
			return nil, err
		}
		if err := g.cross.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// serve lets a request through to next, which gets a copy of it that it may edit, or refuses it.
func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	h := w.Header()
	maps.Copy(h, safeHeaders)
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	id := requestID(r)
	h.Set(requestIDHeader, id)
	if !g.knows(r) {
		p := refuse(http.StatusMisdirectedRequest, "WRONG_HOST", "", fmt.Sprintf("this server is not %q; its names are set with --http-host", r.Host))
		p.write(w, r)
		return
	}
	if err := g.cross.Check(r); err != nil {
		crossOrigin().write(w, r)
		return
	}
	g.allowOrigin(h, r)
	defer g.recover(w, r)
	next(w, r.WithContext(auth.WithOrigin(r.Context(), originOf(r, id))))
}

// originOf is where a request of some id comes from.
func originOf(r *http.Request, id string) auth.Origin {
	var from net.Addr
	if addr, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		from = net.TCPAddrFromAddrPort(addr)
	}
	o := auth.OriginFrom(from, r.TLS)
	o.Request = id
	return o
}

func crossOrigin() *problem {
	p := refuse(http.StatusForbidden, "CROSS_ORIGIN", "", "pages of other origins may not do that")
	p.Code = codeNames[codes.PermissionDenied]
	return p
}

// requestID is the caller's when it is a UUID, else a new one.
func requestID(r *http.Request) string {
	if id := requestid.Read(r.Header.Get(requestIDHeader)); id != "" {
		return id
	}
	return requestid.New()
}

// knows reports whether the request is for a host that this port is.
func (g *guard) knows(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || g.hosts[host] {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.IsLoopback() || ok && ip.Equal(local.IP)
}

// What pages of the origins that are set may use. Credentials are never allowed: the
// API knows no cookies.
const (
	corsMethods = "GET, HEAD, POST, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Ddq-Hold-Token, Ddq-Namespace, Ddq-Request-Id, Traceparent, Tracestate"
	corsExposes = "ETag, Location, Retry-After, Link, Ddq-Request-Id, Ddq-Failed, Ddq-Settled, " +
		"Ddq-Task-Id, Ddq-Hold-Token, Ddq-Hold-Ms, Ddq-Retry-Count, Ddq-Execute-Time, Ddq-Attributes, Traceparent, Tracestate"
)

func (g *guard) allowOrigin(h http.Header, r *http.Request) {
	if len(g.origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(g.origins, origin) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", corsExposes)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", corsHeaders)
		h.Set("Access-Control-Max-Age", "600")
	}
}

// recover answers for a handler that panicked, if it has not answered itself.
func (g *guard) recover(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
		panic(cause)
	}
	g.panicked()
	id := w.Header().Get(requestIDHeader)
	g.log.ErrorContext(r.Context(), "HTTP handler panicked", "request", id, "err", cause, "stack", string(debug.Stack()))
	p := &problem{Status: http.StatusInternalServerError, Code: "INTERNAL", Reason: "INTERNAL", Detail: "internal error", Incident: id}
	p.write(w, r)
}
