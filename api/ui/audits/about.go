package audits

import (
	"strings"

	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// about is what a call is about, with a link to its page where there is one.
func (p *listPage) about(r *ddqv1.AuditRecord) g.Node {
	topic, name := r.GetTopic(), r.GetName()
	text := frame.Cut(strings.Trim(topic+"/"+name, "/"))
	if text == "" || r.GetAltered() {
		return g.Text(text)
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(r.GetMethod(), "/ddq.v1."), "/")
	if service == "AdminService" && topic == "" && strings.HasSuffix(method, "Topic") {
		topic, name = name, "" // topics are called by their names
	}
	own, there := p.own(topic)
	switch {
	case !there:
		return g.Text(text)
	case service == "ScheduleService" && name != "":
		return frame.Anchor(text, "schedule", "topic", own, "name", name)
	case service == "WorkflowService" && name != "":
		return frame.Anchor(text, "workflow", "topic", own, "id", name)
	case service == "OperationService" && name != "":
		return frame.Anchor(text, "operation", "topic", own, "id", name)
	}
	return frame.Anchor(text, "topic", "name", own)
}

// own is the name by which the visitor's pages know a topic; those of other namespaces are not there.
func (p *listPage) own(full string) (name string, there bool) {
	namespace, name, given := strings.Cut(full, "/")
	if !given {
		namespace, name = auth.DefaultNamespace, full
	}
	within := p.within
	if within == "" {
		within = auth.DefaultNamespace
	}
	return name, full != "" && namespace == within
}
