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

	template template
	handle   handler
}

// transcoded reports whether the gateway serves the route.
func (rt *route) transcoded() bool { return rt.input != nil }

// routes is the table of what there is.
type routes struct {
	all []*route
	by  map[place][]*route // in the order in which they are tried
}

// place is where routes are looked for.
type place struct {
	method   string
	segments int
}

// add has a route be found before those that were added earlier.
func (t *routes) add(rt *route) {
	rt.template = templateOf(rt.path)
	t.all = append(t.all, rt)
	at := place{rt.method, len(rt.template.segments)}
	t.by[at] = slices.Insert(t.by[at], 0, rt)
}

// find returns the route of an escaped path, nil when there is none, and the parameters that
// the path has.
func (t *routes) find(method, path string) (*route, map[string]string) {
	segments := strings.Split(path, "/")
	for _, rt := range t.by[place{method, len(segments)}] {
		if rt.template.match(segments) {
			return rt, rt.template.params(segments)
		}
	}
	return nil, nil
}

func key(method, path string) string { return method + " " + path }

// services are those whose calls have routes, in the order in which they are added.
var services = []protoreflect.ServiceDescriptor{
	ddqv1.File_ddq_v1_access_proto.Services().ByName("AccessService"),
	ddqv1.File_ddq_v1_admin_proto.Services().ByName("AdminService"),
	ddqv1.File_ddq_v1_queue_proto.Services().ByName("DelayQueueService"),
	ddqv1.File_ddq_v1_audit_proto.Services().ByName("AuditService"),
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

// allowed are the methods of a path.
func (t *routes) allowed(path string) (methods []string) {
	segments := strings.Split(path, "/")
	for _, rt := range t.all {
		if rt.template.match(segments) && !slices.Contains(methods, rt.method) {
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
