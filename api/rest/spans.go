package rest

import (
	"context"
	"net/http"
)

// Spans makes a span of each request to the API. Many goroutines call it.
type Spans interface {
	// Begin begins that of a request to a route, such as /v1/topics/{topic}, and returns the context that
	// the request has from then on. end takes the status of the answer; it is nil when there is no span.
	Begin(r *http.Request, route string) (ctx context.Context, end func(status int))
}

// Trace has requests to the API be spans, but for those of streams and feeds. It is called before
// ServeAPI.
func (p *Port) Trace(s Spans) { p.spans = s }

// spanned is a request as a span sees it: end is to be called once it is answered.
func spanned(spans Spans, w http.ResponseWriter, r *http.Request, rt *route) (http.ResponseWriter, *http.Request, func()) {
	ctx, end := spans.Begin(r, rt.path)
	if end == nil {
		return w, r, func() {}
	}
	a := &answered{ResponseWriter: w, status: http.StatusOK}
	return a, r.WithContext(ctx), func() { end(a.status) }
}

// answered knows the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
