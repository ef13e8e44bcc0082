package rest

import (
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Rule says who may make a request: whoever may make the call that it stands for. Until
// there are callers with rights that is everybody.
type Rule struct {
	Call   string // /package.Service/Method
	Public bool   // there is no such call: it says nothing of tasks
}

// valid reports whether r says anything.
func (r Rule) valid() bool { return r.Public != (r.Call != "") }

// route is a method and a path of the API.
type route struct {
	method string
	path   string // as in the protos: /v1/topics/{topic}/tasks
	rule   Rule

	// Of a route that the gateway serves; nil for one written by hand.
	input protoreflect.MessageDescriptor
	// The field that the body is, * for all that the path has not, empty for no body.
	body string
}

// transcoded reports whether the gateway serves the route.
func (rt *route) transcoded() bool { return rt.input != nil }

// routes is the table of what there is.
type routes struct {
	all []*route
	by  map[string]*route // by method and the pattern as the gateway spells it
}

func (t *routes) add(rt *route) {
	t.all = append(t.all, rt)
	t.by[key(rt.method, spelled(rt.path))] = rt
}

func key(method, pattern string) string { return method + " " + pattern }

// spelled is a path as the gateway's patterns print it.
func spelled(path string) string { return strings.ReplaceAll(path, "}", "=*}") }

// services are those whose calls have routes. The order is that in which the gateway
// learns them: of two that match it takes the later.
var services = []protoreflect.ServiceDescriptor{
	ddqv1.File_ddq_v1_access_proto.Services().ByName("AccessService"),
	ddqv1.File_ddq_v1_admin_proto.Services().ByName("AdminService"),
	ddqv1.File_ddq_v1_queue_proto.Services().ByName("DelayQueueService"),
	ddqv1.File_ddq_v1_audience_proto.Services().ByName("AudienceService"),
	ddqv1.File_ddq_v1_operation_proto.Services().ByName("OperationService"),
	ddqv1.File_ddq_v1_schedule_proto.Services().ByName("ScheduleService"),
	ddqv1.File_ddq_v1_workflow_proto.Services().ByName("WorkflowService"),
}

// bindings are the routes that the protos say.
func bindings() (all []*route) {
	for _, service := range services {
		methods := service.Methods()
		for i := range methods.Len() {
			method := methods.Get(i)
			first, ok := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
			if !ok || first == nil {
				continue
			}
			for _, http := range append([]*annotations.HttpRule{first}, first.AdditionalBindings...) {
				all = append(all, binding(method, http))
			}
		}
	}
	return all
}

func binding(method protoreflect.MethodDescriptor, http *annotations.HttpRule) *route {
	rt := &route{input: method.Input(), body: http.Body}
	rt.method, rt.path = verbAndPath(http)
	rt.rule.Call = "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	return rt
}

func verbAndPath(rule *annotations.HttpRule) (method, path string) {
	switch p := rule.Pattern.(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, p.Get
	case *annotations.HttpRule_Post:
		return http.MethodPost, p.Post
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, p.Patch
	case *annotations.HttpRule_Put:
		return http.MethodPut, p.Put
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, p.Delete
	}
	return "", ""
}

// allowed are the methods of a path, as the gateway would match it.
func (t *routes) allowed(path string) (methods []string) {
	for _, rt := range t.all {
		if matches(rt.path, path) && !slices.Contains(methods, rt.method) {
			methods = append(methods, rt.method)
		}
	}
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	if len(methods) > 0 {
		methods = append(methods, http.MethodOptions)
	}
	slices.Sort(methods)
	return methods
}

// matches reports whether an escaped path is of a template.
func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	last := len(want) - 1
	name, verb, _ := strings.Cut(want[last], ":")
	if verb != "" {
		before, found := strings.CutSuffix(got[last], ":"+verb)
		if !found || before == "" {
			return false
		}
		want[last], got[last] = name, before
	}
	for i := range want {
		if want[i] != got[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}
