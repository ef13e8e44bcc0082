package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ddq-io/ddq/api/openapi"
)

// contract is the description of the API, as far as it says what requests and answers look like.
type contract struct {
	Paths      map[string]map[string]operation // by template and method
	Components struct {
		Parameters map[string]declared
	}

	mu      sync.Mutex
	schemas *jsonschema.Compiler
}

type operation struct {
	Parameters  []declared
	RequestBody *struct {
		Content  map[string]any
		Required bool
	}
	Responses map[string]struct {
		Content map[string]any
	}
}

// declared is a parameter of an operation, or where it is described.
type declared struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
	Schema   struct{ Type string }
}

var description = sync.OnceValues(func() (*contract, error) {
	c := &contract{schemas: jsonschema.NewCompiler()}
	if err := json.Unmarshal([]byte(openapi.Document), c); err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(openapi.Document))
	if err != nil {
		return nil, err
	}
	c.schemas.AssertFormat()
	return c, c.schemas.AddResource("openapi.json", document)
})

// operation is what a request asks for.
func (c *contract) operation(r *http.Request) (path string, o *operation) {
	for template, methods := range c.Paths {
		verb, best := strings.Contains(template, ":"), strings.Contains(path, ":")
		if found, has := methods[strings.ToLower(r.Method)]; has && templateOf(template).match(strings.Split(r.URL.EscapedPath(), "/")) && (o == nil || verb && !best) {
			path, o = template, &found
		}
	}
	return path, o
}

// check holds a value to the schema at a place of the description.
func (c *contract) check(value any, place ...string) error {
	pointer := "openapi.json#"
	for _, name := range place {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	schema, err := c.schemas.Compile(pointer)
	if err == nil {
		err = schema.Validate(value)
	}
	return err
}

// checkBody holds a body of JSON to what is described at a place, and others to their type.
func (c *contract) checkBody(content map[string]any, kind, body string, place ...string) error {
	kind, _, err := mime.ParseMediaType(kind)
	switch _, described := content[kind]; {
	case err != nil && body == "" && len(content) == 0, content["*/*"] != nil:
		return nil
	case err != nil:
		return err
	case !described:
		return fmt.Errorf("%s is not described", kind)
	case kind != "application/json" && kind != "application/problem+json":
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return c.check(value, append(place, "content", kind, "schema")...)
}

// checkParameters holds the parameters of a request, in its path, query and headers, to their
// schemas.
func (c *contract) checkParameters(r *http.Request, template string, o *operation) error {
	told := r.URL.Query()
	for i, p := range o.Parameters {
		place := []string{"paths", template, strings.ToLower(r.Method), "parameters", strconv.Itoa(i), "schema"}
		if p.Ref != "" {
			name := strings.TrimPrefix(p.Ref, "#/components/parameters/")
			p, place = c.Components.Parameters[name], []string{"components", "parameters", name, "schema"}
		}
		var values []string
		switch p.In {
		case "path":
			values = []string{valueIn(template, r.URL.EscapedPath(), p.Name)}
		case "query":
			values = told[p.Name]
			delete(told, p.Name)
		case "header":
			values = r.Header.Values(p.Name)
		}
		if len(values) == 0 {
			if p.Required {
				return fmt.Errorf("%s lacks %s", p.In, p.Name)
			}
			continue
		}
		if err := c.check(typed(p.Schema.Type, values), place...); err != nil {
			return fmt.Errorf("%s of the %s: %w", p.Name, p.In, err)
		}
	}
	for name := range told {
		return fmt.Errorf("%s of the query is not described", name)
	}
	return nil
}

// typed are the values of a parameter as its schema has them.
func typed(kind string, values []string) any {
	switch kind {
	case "integer", "number":
		return json.Number(values[0])
	case "boolean":
		if value, err := strconv.ParseBool(values[0]); err == nil {
			return value
		}
	case "array":
		all := make([]any, len(values))
		for i, value := range values {
			all[i] = value
		}
		return all
	}
	return values[0]
}

// valueIn is what a path has for a name of its template.
func valueIn(template, path, name string) string {
	got := strings.Split(path, "/")
	for i, part := range strings.Split(template, "/") {
		if inner, verb, _ := strings.Cut(part, ":"); inner == "{"+name+"}" {
			value, err := url.PathUnescape(strings.TrimSuffix(got[i], ":"+verb))
			if err == nil {
				return value
			}
		}
	}
	return ""
}

// described fails the test when an answer, or a request that was taken, is not as the
// description of the API says.
func described(t *testing.T, request *http.Request, sent string, answer *http.Response, got []byte) {
	t.Helper()
	c, err := description()
	must(t, err)
	template, o := c.operation(request)
	if o == nil || answer.StatusCode == http.StatusRequestHeaderFieldsTooLarge { // which the library answers
		return
	}
	place := []string{"paths", template, strings.ToLower(request.Method)}
	if answer.StatusCode < http.StatusBadRequest {
		err = c.checkParameters(request, template, o)
		switch body := o.RequestBody; {
		case err != nil:
		case body == nil:
		case sent != "":
			err = c.checkBody(body.Content, request.Header.Get("Content-Type"), sent, append(place, "requestBody")...)
		case body.Required:
			err = errors.New("the body is missing")
		}
		if err != nil {
			t.Errorf("%s %s: %v", request.Method, request.URL, err)
		}
	}
	status := strconv.Itoa(answer.StatusCode)
	responses := append(place, "responses", status)
	response, has := o.Responses[status]
	if !has {
		if _, has = o.Responses["default"]; !has || answer.StatusCode < http.StatusBadRequest {
			t.Errorf("%s %s: an answer with %s is not described", request.Method, request.URL, status)
			return
		}
		responses = []string{"components", "responses", "Problem"}
		response.Content = map[string]any{"application/problem+json": true}
	}
	if err := c.checkBody(response.Content, answer.Header.Get("Content-Type"), string(got), responses...); err != nil {
		t.Errorf("%s %s, answered with %s: %v", request.Method, request.URL, status, err)
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
	for path, methods := range c.Paths {
		for method := range methods {
			told[key(strings.ToUpper(method), path)] = true
		}
	}
	r := newRig(t, Config{})
	for _, rt := range r.port.api.(*api).routes.all {
		path := rt.path
		for _, nested := range []string{"ack.task_", "nack.task_", "extend.task_", "checkpoint.task_", "schedule.", "existing.", "calendar.", "target.", "workflow.", "binding."} {
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
