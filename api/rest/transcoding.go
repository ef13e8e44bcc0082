package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	gateway "github.com/ddq-io/ddq/api/rest/gateway/ddq/v1"
)

// learn adds the routes of the protos, each with the handler that the gateway has for it.
func (a *api) learn(conn grpc.ClientConnInterface) error {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{}),
		runtime.WithIncomingHeaderMatcher(func(key string) (string, bool) { return namespaceKey, key == namespaceHeader }),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithMiddlewares(found),
		runtime.WithForwardResponseOption(answer),
		runtime.WithErrorHandler(failed),
		runtime.WithRoutingErrorHandler(notFound),
	)
	if err := register(mux, conn); err != nil {
		return err
	}
	for _, rt := range bindings() {
		if rt.handle = handlerOf(mux, rt); rt.handle == nil {
			return fmt.Errorf("the gateway does not serve %s %s", rt.method, rt.path)
		}
		a.routes.add(rt)
	}
	return nil
}

func register(mux *runtime.ServeMux, conn grpc.ClientConnInterface) error {
	ctx := context.Background()
	return errors.Join(
		gateway.RegisterAccessServiceHandlerClient(ctx, mux, ddqv1.NewAccessServiceClient(conn)),
		gateway.RegisterAdminServiceHandlerClient(ctx, mux, ddqv1.NewAdminServiceClient(conn)),
		gateway.RegisterDelayQueueServiceHandlerClient(ctx, mux, ddqv1.NewDelayQueueServiceClient(conn)),
		gateway.RegisterAuditServiceHandlerClient(ctx, mux, ddqv1.NewAuditServiceClient(conn)),
		gateway.RegisterAudienceServiceHandlerClient(ctx, mux, ddqv1.NewAudienceServiceClient(conn)),
		gateway.RegisterOperationServiceHandlerClient(ctx, mux, ddqv1.NewOperationServiceClient(conn)),
		gateway.RegisterScheduleServiceHandlerClient(ctx, mux, ddqv1.NewScheduleServiceClient(conn)),
		gateway.RegisterWorkflowServiceHandlerClient(ctx, mux, ddqv1.NewWorkflowServiceClient(conn)),
	)
}

var paramInPath = regexp.MustCompile(`{[^}]*}`)

// handlerOf is the handler that the gateway has for a route, nil for none. The library tells only
// by serving a request: see found. It tries all its patterns on each, so it is asked once.
func handlerOf(mux *runtime.ServeMux, rt *route) handler {
	var s search
	r := &http.Request{Method: rt.method, URL: &url.URL{Path: paramInPath.ReplaceAllString(rt.path, "x")}}
	mux.ServeHTTP(nil, r.WithContext(context.WithValue(context.Background(), searchKey{}, &s)))
	if s.pattern != strings.ReplaceAll(rt.path, "}", "=*}") { // as the library spells it
		return nil
	}
	return s.handler
}

// search is for the handler of a route.
type search struct {
	pattern string
	handler handler
}

type searchKey struct{}

// found stands before the handlers of the gateway, and tells of the one that a search reached.
func found(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request, _ map[string]string) {
		pattern, _ := runtime.HTTPPattern(r.Context())
		if s, ok := r.Context().Value(searchKey{}).(*search); ok {
			s.pattern, s.handler = pattern.String(), handler(next)
		}
	}
}

// notFound leaves a search without result.
func notFound(context.Context, *runtime.ServeMux, runtime.Marshaler, http.ResponseWriter, *http.Request, int) {
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

// failed answers a request whose call failed, or that could not become one.
func failed(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	why(r, err).asAsked(asked(r)).write(w, r)
}
