package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Prefix is that of every path of the API.
const Prefix = "/v1/"

// api answers requests by calls of the server. It owns no goroutine.
type api struct {
	queue   ddqv1.DelayQueueServiceClient
	admin   ddqv1.AdminServiceClient
	changes ddqv1.OperationServiceClient
	routes  *routes
	spans   Spans        // nil: there are none
	watches atomic.Int64 // that are open
}

func newAPI(conn grpc.ClientConnInterface, spans Spans) (*api, error) {
	a := &api{
		queue: ddqv1.NewDelayQueueServiceClient(conn), admin: ddqv1.NewAdminServiceClient(conn), changes: ddqv1.NewOperationServiceClient(conn),
		routes: &routes{by: make(map[place][]*route)}, spans: spans,
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

// handler answers a request whose path and rule were checked.
type handler func(w http.ResponseWriter, r *http.Request, params map[string]string)

// route serves a route that is written by hand. It is the only way to add one.
func (a *api) route(method, path string, rule Rule, h handler) error {
	if !rule.valid() {
		return fmt.Errorf("%s %s has no rule", method, path)
	}
	a.routes.add(&route{method: method, path: path, rule: rule, handle: h})
	return nil
}

// ServeHTTP answers a request, which is the port's own.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		a.options(w, r)
		return
	}
	head := r.Method == http.MethodHead
	if head { // the library leaves out the body
		r.Method = http.MethodGet
	}
	rt, params := a.routes.find(r.Method, r.URL.EscapedPath())
	switch {
	case rt == nil:
		a.lost(w, r)
	case rt.transcoded():
		a.transcode(w, r, rt, params)
	default:
		p := checkParams(params)
		if p == nil && head { // of what may never end
			p = noRoute([]string{http.MethodGet})
		}
		if p != nil {
			p.write(w, r)
			return
		}
		rt.handle(w, r.WithContext(asCaller(r)), params)
	}
}

// transcode checks a request before the gateway makes a call of it.
func (a *api) transcode(w http.ResponseWriter, r *http.Request, rt *route, params map[string]string) {
	if a.spans != nil {
		var end func()
		w, r, end = spanned(a.spans, w, r, rt)
		defer end()
	}
	p := checkParams(params)
	if p == nil {
		p = checkRequest(rt, r, params)
	}
	var edits []edit
	if p == nil {
		edits, p = editsOf(rt, r)
	}
	if p != nil {
		p.write(w, r)
		return
	}
	b := limitBody(w, r)
	b.params, b.edits = params, edits
	rt.handle(w, bare(r, b), params)
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
		a.lost(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	w.WriteHeader(http.StatusNoContent)
}

// lost answers what no route matches.
func (a *api) lost(w http.ResponseWriter, r *http.Request) {
	allowed := a.routes.allowed(r.URL.EscapedPath())
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
	}
	noRoute(allowed).write(w, r)
}

// why is what a request gets to know of an error of the gateway, or of its call.
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
