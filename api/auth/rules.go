package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Where says which topics a call is about.
type Where uint8

const (
	// Public is of calls that anybody may make.
	Public Where = iota + 1
	// Anyone is of calls that every principal may make.
	Anyone
	// Topic is of requests with a topic. One without asks for all topics of the namespace.
	Topic
	// Name is of requests whose name is that of a topic.
	Name
	// Each is of requests whose items have a topic each. They are refused one by one, by
	// the handler.
	Each
	// Hello is of streams whose first message has the topic.
	Hello
	// Shown is of listings: what is granted is listed, and the rest is not there. A listing
	// of one topic is as Topic.
	Shown
	// Namespace is of calls about tokens: the verb on any topic allows the call, which looks
	// at the grants of the token itself.
	Namespace
	// Whole is of calls about what belongs to no topic, such as an audience: they need the
	// verb on every topic of the namespace.
	Whole
	// Fleet is of calls about nodes and shards, which need a grant for everything.
	Fleet
)

// Rule is what a method needs: one of the verbs, there.
type Rule struct {
	Method string // as /package.Service/Method
	Verbs  Verbs
	Where  Where
}

// Audited reports whether calls change what others rely on, or who may do what: those are
// written down where a server keeps an audit log.
func (r *Rule) Audited() bool {
	return r.Verbs&(Operate|Admin) != 0 && r.Verbs&Read == 0
}

// Everywhere reports whether a method is about all namespaces at once.
func (r *Rule) Everywhere() bool {
	return r.Verbs == Audit || strings.HasSuffix(r.Method, "/PlanRebalance")
}

// settling are the methods by which work that was taken is finished. They are never too many.
var settling = []string{"Subscribe", "Ack", "Nack", "Extend", "Checkpoint", "Settle"}

// Settles reports whether a method finishes work that was taken.
func (r *Rule) Settles() bool {
	return r.Verbs.Has(Work) && slices.Contains(settling, r.Method[strings.LastIndexByte(r.Method, '/')+1:])
}

// services with the rules of their methods, which are one line each.
var services = map[string][]Rule{
	"ddq.v1.DelayQueueService": {
		{"Enqueue", Enqueue, Topic},
		{"EnqueueBatch", Enqueue, Each},
		{"EnqueueStream", Enqueue, Each},
		{"GetTask", Read, Topic},
		{"ListTasks", Read, Topic},
		{"CountTasks", Read, Topic},
		{"DueHistogram", Read, Topic},
		{"WatchTasks", Read, Topic},
		{"WaitTask", Read | Enqueue, Topic},
		{"UpdateTask", Enqueue, Topic},
		{"RescheduleTask", Enqueue, Topic},
		{"PromoteTask", Enqueue, Topic},
		{"DeleteTask", Enqueue, Topic},
		{"CancelTask", Enqueue, Topic},
		{"DeleteTasks", Operate, Topic},
		{"RescheduleTasks", Operate, Topic},
		{"Subscribe", Work | Node, Hello},
		{"Retrieve", Work, Topic},
		{"Ack", Work, Topic},
		{"Nack", Work, Topic},
		{"Extend", Work, Topic},
		{"Checkpoint", Work, Topic},
		{"Settle", Work, Topic},
		{"AcquireTokens", Work, Topic},
	},
	"ddq.v1.AdminService": {
		{"CreateTopic", Operate, Name},
		{"ConfigureTopic", Operate, Name},
		{"DescribeTopic", Read, Name},
		{"ListTopics", Read, Shown},
		{"DeleteTopic", Admin, Name},
		{"PauseTopic", Operate, Name},
		{"ResumeTopic", Operate, Name},
		{"PurgeTopic", Admin, Name},
		{"ReshardTopic", Admin, Name},
		{"ListDeadLetters", Read, Topic},
		{"RequeueDeadLetters", Operate, Topic},
		{"DeleteDeadLetters", Operate, Topic},
		{"DescribeServer", 0, Anyone},
		{"ListNodes", 0, Anyone},
		{"ListShards", Read, Shown},
		{"GetOverview", Read, Shown},
		{"WatchOverview", Read, Shown},
		{"ListWorkers", Read, Shown},
		{"DrainNode", Admin, Fleet},
		{"UndrainNode", Admin, Fleet},
		{"SetLogLevel", Admin, Fleet},
		{"PlanRebalance", Admin, Fleet},
		{"ReleaseShard", Admin, Fleet},
	},
	"ddq.v1.OperationService": {
		{"StartOperation", Operate, Topic},
		{"GetOperation", Read, Topic},
		{"ListOperations", Read, Topic},
		{"StopOperation", Operate, Topic},
	},
	// Whoever puts a schedule needs to enqueue on its topic, too: the handler asks for that.
	"ddq.v1.ScheduleService": {
		{"PutSchedule", Operate, Topic},
		{"PutSchedules", Operate, Each},
		{"GetSchedule", Read, Topic},
		{"ListSchedules", Read, Shown},
		{"PreviewSchedule", Read, Topic},
		{"Forecast", Read, Topic},
		{"DryRun", Read, Topic},
		{"DeleteSchedule", Operate, Topic},
		{"PauseSchedule", Operate, Topic},
		{"ResumeSchedule", Operate, Topic},
		{"TriggerSchedule", Operate, Topic},
		{"BackfillSchedule", Operate, Topic},
		{"CancelBackfill", Operate, Topic},
		// Calendars are shared by all topics of all namespaces.
		{"PutCalendar", Admin, Fleet},
		{"GetCalendar", 0, Anyone},
		{"ListCalendars", 0, Anyone},
		{"DeleteCalendar", Admin, Fleet},
	},
	// Whoever submits a workflow needs to enqueue on the topics of all its steps, too: the handler
	// asks for that.
	"ddq.v1.WorkflowService": {
		{"SubmitWorkflow", Enqueue, Topic},
		{"SubmitWorkflows", Enqueue, Each},
		{"GetWorkflow", Read, Topic},
		{"ListSteps", Read, Topic},
		{"GetStepResults", Payload | Work, Topic},
		{"ListWorkflows", Read, Shown},
		{"CancelWorkflow", Enqueue, Topic},
		{"SignalWorkflow", Enqueue, Topic},
		{"RetryWorkflow", Operate, Topic},
		{"SkipStep", Operate, Topic},
		{"PauseWorkflow", Operate, Topic},
		{"ResumeWorkflow", Operate, Topic},
		{"DeleteWorkflow", Operate, Topic},
		{"WaitWorkflow", Read | Enqueue, Topic},
		{"WatchWorkflow", Read, Topic},
	},
	// What is known of recipients goes into payloads.
	"ddq.v1.AudienceService": {
		{"CreateAudience", Operate, Whole},
		{"DescribeAudience", Read, Whole},
		{"ListAudiences", Read, Whole},
		{"DeleteAudience", Operate, Whole},
		{"PutRecipients", Operate, Whole},
		{"DeleteRecipients", Operate, Whole},
		{"GetRecipient", Payload, Whole},
		{"ListRecipients", Payload, Whole},
		{"PreviewAudience", Payload, Whole},
		{"ListRuns", Read, Whole},
		{"GetRun", Read, Whole},
		{"CancelRun", Operate, Whole},
		{"BeginReplacement", Operate, Whole},
		{"EndReplacement", Operate, Whole},
	},
	"ddq.v1.AccessService": {
		{"WhoAmI", 0, Anyone},
		{"CreateToken", Admin, Namespace},
		{"ListTokens", Admin, Namespace},
		{"RotateToken", Admin, Namespace},
		{"RevokeToken", Admin, Namespace},
		{"PutBinding", Admin, Namespace},
		{"ListBindings", Admin, Namespace},
		{"DeleteBinding", Admin, Namespace},
		{"CreateNamespace", Admin, Fleet},
		{"GetNamespace", Admin, Fleet},
		{"ListNamespaces", Admin, Fleet},
		{"ConfigureNamespace", Admin, Fleet},
		{"DeleteNamespace", Admin, Fleet},
	},
	"ddq.v1.AuditService": {
		{"ListAuditRecords", Audit, Fleet},
		{"VerifyAudit", Audit, Fleet},
	},
	"ddq.v1.PeerService": {
		{"Notify", Node, Fleet},
		{"DescribePeer", Node, Fleet},
		{"ListPeerWorkers", Node, Fleet},
		{"DrainPeer", Node, Fleet},
		{"SetPeerLogLevel", Node, Fleet},
		{"ReleasePeerShard", Node, Fleet},
		{"ListPeerAudit", Node, Fleet},
		{"VerifyPeerAudit", Node, Fleet},
	},
	"grpc.health.v1.Health": {
		{"Check", 0, Public},
		{"List", 0, Public},
		{"Watch", 0, Public},
	},
	"grpc.reflection.v1.ServerReflection":      {{"ServerReflectionInfo", 0, Anyone}},
	"grpc.reflection.v1alpha.ServerReflection": {{"ServerReflectionInfo", 0, Anyone}},
}

// Reads reports whether a method of a service needs no more than to read.
func Reads(service, method string) bool {
	i := slices.IndexFunc(services[service], func(r Rule) bool { return r.Method == method })
	return i >= 0 && services[service][i].Verbs.Has(Read)
}

// Rules is the rule of each method. It does not change.
type Rules struct{ byMethod map[string]*Rule }

// RulesFor returns the rules of a server with these methods. An error names a method that has
// no rule, or a rule that has no method: either would be a hole, or a line that nobody tests.
func RulesFor(methods []string) (*Rules, error) {
	r := &Rules{byMethod: make(map[string]*Rule, len(methods))}
	served := make(map[string]bool)
	for _, method := range methods {
		service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
		served[service] = true
		i := slices.IndexFunc(services[service], func(rule Rule) bool { return rule.Method == name })
		if i < 0 {
			return nil, fmt.Errorf("method %s has no rule in api/auth/rules.go", method)
		}
		rule := services[service][i]
		rule.Method = method
		r.byMethod[method] = &rule
	}
	for service := range served {
		for _, rule := range services[service] {
			if r.byMethod["/"+service+"/"+rule.Method] == nil {
				return nil, fmt.Errorf("the rule of /%s/%s has no method", service, rule.Method)
			}
		}
	}
	return r, nil
}

// Of returns the rule of a method; nil: nobody may call it.
func (r *Rules) Of(method string) *Rule { return r.byMethod[method] }

// Allow reports whether p may make a call about a topic, which is empty when the request
// names none. Of a request with items it says whether one of them may be allowed.
func (r *Rule) Allow(p *Principal, topic string) bool {
	switch r.Where {
	case Public:
		return true
	case Anyone:
		return p != nil
	}
	if p == nil {
		return false
	}
	switch r.Where {
	case Name, Hello:
		return p.Allow(r.Verbs, topic)
	case Topic:
		return p.Allow(r.Verbs, topic) || topic == "" && p.Grants.AllowAll(r.Verbs, p.Namespace)
	case Shown:
		return p.Allow(r.Verbs, topic) || topic == "" && p.Grants.AllowSome(r.Verbs, p.Namespace)
	case Each, Namespace:
		return p.Grants.AllowSome(r.Verbs, p.Namespace)
	case Whole:
		return p.Grants.AllowAll(r.Verbs, p.Namespace)
	case Fleet:
		return p.Grants.AllowFleet(r.Verbs)
	}
	return false
}
