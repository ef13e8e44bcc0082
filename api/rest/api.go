package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/api/ddqv1"
	gateway "github.com/ddq-io/ddq/api/rest/gateway/ddq/v1"
)

// Prefix is that of every path of the API.
const Prefix = "/v1/"

// api answers requests by calls of the server. It owns no goroutine.
type api struct {
	queue   ddqv1.DelayQueueServiceClient
	admin   ddqv1.AdminServiceClient
	changes ddqv1.OperationServiceClient
	mux     *runtime.ServeMux
	routes  *routes
	spans   Spans        // nil: there are none
	watches atomic.Int64 // that are open
}

func newAPI(conn grpc.ClientConnInterface, spans Spans) (*api, error) {
	a := &api{
		queue: ddqv1.NewDelayQueueServiceClient(conn), admin: ddqv1.NewAdminServiceClient(conn), changes: ddqv1.NewOperationServiceClient(conn),
		routes: &routes{by: make(map[string]*route)}, spans: spans,
	}
	a.mux = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{}),
		runtime.WithUnescapingMode(runtime.UnescapingModeAllCharacters),
		runtime.WithIncomingHeaderMatcher(func(key string) (string, bool) { return namespaceKey, key == namespaceHeader }),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithMiddlewares(a.request),
		runtime.WithForwardResponseOption(answer),
		runtime.WithErrorHandler(a.failed),
		runtime.WithRoutingErrorHandler(a.lost),
	)
	for _, rt := range bindings() {
		a.routes.add(rt)
	}
	return a, errors.Join(a.learn(conn), a.byHand())
}

// byHand adds what cannot be transcoded: streams, and bodies that are not JSON.
func (a *api) byHand() error {
	const topic = Prefix + "topics/{topic}"
	return errors.Join(
		a.route(http.MethodPost, topic+"/tasks:raw", Rule{Call: ddqv1.DelayQueueService_Enqueue_FullMethodName}, a.raw),
		a.route(http.MethodPost, topic+":take", Rule{Call: ddqv1.DelayQueueService_Retrieve_FullMethodName}, a.take),
		a.route(http.MethodPost, topic+"/tasks:import", Rule{Call: ddqv1.DelayQueueService_EnqueueStream_FullMethodName}, a.importLines),
		a.route(http.MethodGet, topic+"/tasks:export", Rule{Call: ddqv1.DelayQueueService_ListTasks_FullMethodName}, a.export),
		a.route(http.MethodGet, topic+":watch", Rule{Call: ddqv1.DelayQueueService_WatchTasks_FullMethodName}, a.watch),
		a.route(http.MethodGet, Prefix+"overview:watch", Rule{Call: ddqv1.AdminService_WatchOverview_FullMethodName}, a.watchOverview),
		a.route(http.MethodGet, topic+"/operations/{id}:watch", Rule{Call: ddqv1.OperationService_GetOperation_FullMethodName}, a.watchOperation),
		a.route(http.MethodGet, Prefix+"openapi.json", Rule{Public: true}, describe()),
	)
}

// learn makes the gateway serve the bindings, in the order of services.
func (a *api) learn(conn grpc.ClientConnInterface) error {
	return errors.Join(
		gateway.RegisterAccessServiceHandlerClient(context.Background(), a.mux, ddqv1.NewAccessServiceClient(conn)),
		gateway.RegisterAdminServiceHandlerClient(context.Background(), a.mux, ddqv1.NewAdminServiceClient(conn)),
		gateway.RegisterDelayQueueServiceHandlerClient(context.Background(), a.mux, ddqv1.NewDelayQueueServiceClient(conn)),
		gateway.RegisterAudienceServiceHandlerClient(context.Background(), a.mux, ddqv1.NewAudienceServiceClient(conn)),
		gateway.RegisterOperationServiceHandlerClient(context.Background(), a.mux, ddqv1.NewOperationServiceClient(conn)),
		gateway.RegisterScheduleServiceHandlerClient(context.Background(), a.mux, ddqv1.NewScheduleServiceClient(conn)),
		gateway.RegisterWorkflowServiceHandlerClient(context.Background(), a.mux, ddqv1.NewWorkflowServiceClient(conn)),
	)
}

// handler answers a request whose path and rule were checked.
type handler func(w http.ResponseWriter, r *http.Request, params map[string]string)

// route serves a route that is written by hand. It is the only way to add one.
func (a *api) route(method, path string, rule Rule, h handler) error {
	if !rule.valid() {
		return fmt.Errorf("%s %s has no rule", method, path)
	}
	a.routes.add(&route{method: method, path: path, rule: rule})
	return a.mux.HandlePath(method, path, runtime.HandlerFunc(h))
}

// ServeHTTP makes the request, which is the port's own, one that the gateway reads as it was meant.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		a.options(w, r)
		return
	}
	if r.Method == http.MethodHead { // the library leaves out the body
		r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
		r.Method = http.MethodGet
	}
	where := *r.URL
	// The gateway unescapes what it finds here; in lower case a slash is part of a name.
	where.RawPath = strings.ReplaceAll(r.URL.EscapedPath(), "%2F", "%2f")
	r.URL = &where
	a.mux.ServeHTTP(w, r)
}

// headKey is of requests that were HEAD.
type headKey struct{}

// request is between the gateway's choice of a route and the route. It is called once for each.
func (a *api) request(next runtime.HandlerFunc) runtime.HandlerFunc {
	var first sync.Once
	var rt *route
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		first.Do(func() {
			pattern, _ := runtime.HTTPPattern(r.Context())
			rt = a.routes.by[key(r.Method, pattern.String())]
		})
		if rt == nil {
			a.lost(r.Context(), a.mux, nil, w, r, http.StatusNotFound)
			return
		}
		if a.spans != nil && rt.transcoded() {
			var end func()
			w, r, end = spanned(a.spans, w, r, rt)
			defer end()
		}
		p := checkParams(params)
		if p == nil && rt.transcoded() {
			p = checkRequest(rt, r, params)
		}
		if p != nil {
			p.write(w, r)
			return
		}
		if !rt.transcoded() {
			if r.Context().Value(headKey{}) != nil { // of what may never end
				noRoute([]string{http.MethodGet}).write(w, r)
				return
			}
			next(w, r.WithContext(asCaller(r)), params)
			return
		}
		edits, p := editsOf(rt, r)
		if p != nil {
			p.write(w, r)
			return
		}
		b := limitBody(w, r)
		b.params, b.edits = params, edits
		next(w, bare(r, b), params)
	}
}

// bare is a request with what the gateway is to make a call of. It would act upon headers that are not
// for it, and hand on where the request comes from, which the context has.
func bare(r *http.Request, b *body) *http.Request {
	own := r.WithContext(context.WithValue(r.Context(), requestKey{}, r))
	own.Body, own.Header, own.Host, own.RemoteAddr = b, make(http.Header), "", ""
	for _, name := range []string{"Authorization", namespaceHeader} {
		if values := r.Header[name]; len(values) > 0 {
			own.Header[name] = values
		}
	}
	return own
}

// asked is the request that a bare one was made of, or else the one that it is.
func asked(r *http.Request) *http.Request {
	if full, ok := r.Context().Value(requestKey{}).(*http.Request); ok {
		return full
	}
	return r
}

// asCaller lets the calls of a route that is written by hand bring what the request says of
// who makes it, and of its namespace. The gateway does that by itself.
func asCaller(r *http.Request) context.Context {
	ctx := r.Context()
	for _, value := range r.Header.Values("Authorization") {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", value)
	}
	for _, value := range r.Header.Values(namespaceHeader) {
		ctx = metadata.AppendToOutgoingContext(ctx, namespaceKey, value)
	}
	return ctx
}

// A request names its namespace by a header, and a call by metadata.
const (
	namespaceHeader = "Ddq-Namespace"
	namespaceKey    = "ddq-namespace"
)

func (a *api) options(w http.ResponseWriter, r *http.Request) {
	allowed := a.routes.allowed(r.URL.EscapedPath())
	if len(allowed) == 0 {
		a.lost(r.Context(), a.mux, nil, w, r, http.StatusNotFound)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	w.WriteHeader(http.StatusNoContent)
}

// lost answers what no route matches.
func (a *api) lost(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, _ int) {
	allowed := a.routes.allowed(r.URL.EscapedPath())
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
	}
	noRoute(allowed).write(w, r)
}

// failed answers a request whose call failed, or that could not become one.
func (a *api) failed(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	why(r, err).asAsked(asked(r)).write(w, r)
}

func why(r *http.Request, err error) *problem {
	if b, ok := r.Body.(*body); ok && b.wrong != nil {
		return b.wrong
	}
	var known *problemError
	if errors.As(err, &known) {
		return known.problem
	}
	var text *runtime.HTTPStatusError
	if errors.As(err, &text) {
		return malformed("", text.Err.Error())
	}
	p := problemOf(err)
	if p.Reason == codeNames[codes.InvalidArgument] { // the gateway's own
		return malformed(parameter(p.Detail), p.Detail)
	}
	return p
}

// problemError carries a problem through the gateway.
type problemError struct{ *problem }

func (e *problemError) Error() string { return e.Detail }

// parameter is the one that the gateway could not read, which it says in quotes.
func parameter(said string) string {
	_, after, _ := strings.Cut(said, `"`)
	name, _, found := strings.Cut(after, `"`)
	if !found {
		return ""
	}
	return name
}

// stateName is a state as problems name it.
func stateName(s ddqv1.TaskState) string {
	if s == ddqv1.TaskState_TASK_STATE_UNSPECIFIED {
		return ""
	}
	return strings.TrimPrefix(s.String(), "TASK_STATE_")
}
