package rest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/responses"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"github.com/ddq-io/ddq/api/openapi"
)

// contract is the description of the API, and what compares requests with it.
type contract struct {
	paths    map[string]*v3.PathItem
	requests validator.Validator
	answers  responses.ResponseBodyValidator
}

var description = sync.OnceValues(func() (*contract, error) {
	document, err := libopenapi.NewDocument([]byte(openapi.Document))
	if err != nil {
		return nil, err
	}
	model, err := document.BuildV3Model()
	if err != nil {
		return nil, err
	}
	c := &contract{paths: make(map[string]*v3.PathItem), requests: validator.NewValidatorFromV3Model(&model.Model)}
	c.answers = c.requests.GetResponseBodyValidator()
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		c.paths[path] = item
	}
	return c, nil
})

// item is the path that a request is for. The library knows no verbs behind a name.
func (c *contract) item(r *http.Request) (path string, item *v3.PathItem) {
	for template, candidate := range c.paths {
		verb, best := strings.Contains(template, ":"), strings.Contains(path, ":")
		if _, has := candidate.GetOperations().Get(strings.ToLower(r.Method)); has && matches(template, r.URL.EscapedPath()) && (item == nil || verb && !best) {
			path, item = template, candidate
		}
	}
	return path, item
}

// described fails the test when an answer, or a request that was taken, is not as the
// description of the API says.
func described(t *testing.T, request *http.Request, sent string, answer *http.Response, got []byte) {
	t.Helper()
	c, err := description()
	must(t, err)
	path, item := c.item(request)
	switch {
	case item == nil, answer.StatusCode == http.StatusRequestHeaderFieldsTooLarge: // which the library answers
		return
	case answer.Header.Get("Content-Type") == linesType: // to the library that is one value
		return
	}
	own := request.Clone(t.Context())
	var wrong []*errors.ValidationError
	if answer.StatusCode < http.StatusBadRequest {
		own.Body = io.NopCloser(strings.NewReader(sent))
		_, wrong = c.requests.ValidateHttpRequestSyncWithPathItem(own, item, path)
	}
	copied := *answer
	copied.Body = io.NopCloser(bytes.NewReader(got))
	own.Body = http.NoBody
	_, also := c.answers.ValidateResponseBodyWithPathItem(own, &copied, item, path)
	for _, w := range append(wrong, also...) {
		t.Errorf("%s %s, answered with %d: %s: %s %v", request.Method, request.URL, answer.StatusCode, w.Message, w.Reason, w.SchemaValidationErrors)
	}
}

func TestDescription(t *testing.T) {
	r := newRig(t, Config{})
	got := r.do("GET", "/v1/openapi.json", "").want(200)
	if got.body != openapi.Document || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %v and %d bytes", got.header, len(got.body))
	}
	same := r.do("GET", "/v1/openapi.json", "", "If-None-Match: "+got.header.Get("ETag")).want(304)
	if same.body != "" {
		t.Errorf("got %q", same.body)
	}
	r.do("GET", "/v1/openapi.json", "", `If-None-Match: "other"`).want(200)
}

func TestEveryRouteIsDescribed(t *testing.T) {
	c, err := description()
	must(t, err)
	told := make(map[string]bool)
	for path, item := range c.paths {
		for method := range item.GetOperations().FromOldest() {
			told[key(strings.ToUpper(method), path)] = true
		}
	}
	r := newRig(t, Config{})
	for _, rt := range r.port.api.(*api).routes.all {
		path := rt.path
		for _, nested := range []string{"ack.task_", "nack.task_", "extend.task_", "schedule.", "existing.", "calendar.", "target.", "workflow.", "binding."} {
			path = strings.ReplaceAll(path, "{"+nested, "{")
		}
		if !told[key(rt.method, path)] {
			t.Errorf("%s %s is not described", rt.method, path)
		}
		delete(told, key(rt.method, path))
	}
	for route := range told {
		t.Errorf("%s is described, and not there", route)
	}
}
