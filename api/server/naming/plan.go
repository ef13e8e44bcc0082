package naming

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// plan is where messages of one type have what is of a namespace.
type plan struct {
	names  []protoreflect.FieldDescriptor // of topics and audiences
	tokens []protoreflect.FieldDescriptor // of pages
	texts  []protoreflect.FieldDescriptor // of errors, which may quote a name
	parts  []part
}

// part is a field with messages that have a plan.
type part struct {
	field protoreflect.FieldDescriptor
	plan  *plan
}

// named are the messages whose field called name is that of a topic or an audience.
var named = map[protoreflect.Name]bool{
	"Topic": true, "CreateTopicRequest": true, "ConfigureTopicRequest": true, "DescribeTopicRequest": true,
	"DeleteTopicRequest": true, "PauseTopicRequest": true, "ResumeTopicRequest": true, "PurgeTopicRequest": true,
	"ReshardTopicRequest": true,
	"Audience":            true, "AudienceTarget": true, "DescribeAudienceRequest": true, "DeleteAudienceRequest": true,
}

// isName reports whether a field of text is the name of a topic or an audience.
func isName(f protoreflect.FieldDescriptor) bool {
	switch f.Name() {
	case "topic", "workflow_topic", "audience":
		return true
	case "name":
		return named[f.Parent().Name()]
	}
	return false
}

// plans of types of messages.
type plans map[protoreflect.FullName]*plan

// newPlans makes those of all messages of the package that methods of clients have.
func newPlans() plans {
	all := make(plans)
	protoregistry.GlobalFiles.RangeFilesByPackage("ddq.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			all.add(file.Messages().Get(i))
		}
		return true
	})
	all.prune()
	return all
}

// add makes the plan of a type and of those in it. Types may have themselves.
func (all plans) add(d protoreflect.MessageDescriptor) *plan {
	if p := all[d.FullName()]; p != nil {
		return p
	}
	p := new(plan)
	all[d.FullName()] = p
	for i := range d.Fields().Len() {
		switch f := d.Fields().Get(i); {
		case f.IsMap():
		case f.Message() != nil && f.Message().ParentFile().Package() == "ddq.v1":
			p.parts = append(p.parts, part{f, all.add(f.Message())})
		case f.Kind() != protoreflect.StringKind || f.IsList():
		case isName(f):
			p.names = append(p.names, f)
		case f.Name() == "page_token" || f.Name() == "next_page_token":
			p.tokens = append(p.tokens, f)
		case d.Name() == "Error" && f.Name() == "message":
			p.texts = append(p.texts, f)
		}
	}
	return p
}

// prune leaves out parts that lead to nothing.
func (all plans) prune() {
	leads := make(map[*plan]bool, len(all))
	for changed := true; changed; {
		changed = false
		for _, p := range all {
			if !leads[p] && p.has(leads) {
				leads[p], changed = true, true
			}
		}
	}
	for name, p := range all {
		if !leads[p] {
			delete(all, name)
			continue
		}
		kept := p.parts[:0]
		for _, sub := range p.parts {
			if leads[sub.plan] {
				kept = append(kept, sub)
			}
		}
		p.parts = kept
	}
}

// has reports whether a message of the plan may have something, as far as that is known of others.
func (p *plan) has(leads map[*plan]bool) bool {
	if len(p.names)+len(p.tokens)+len(p.texts) > 0 {
		return true
	}
	for _, sub := range p.parts {
		if leads[sub.plan] {
			return true
		}
	}
	return false
}

// edit is what to do with texts of a message.
type edit struct {
	name, token, text func(string) string // nil: nothing
}

// apply edits a message.
func (p *plan) apply(m protoreflect.Message, e *edit) {
	set(m, p.names, e.name)
	set(m, p.tokens, e.token)
	set(m, p.texts, e.text)
	for _, sub := range p.parts {
		if !m.Has(sub.field) {
			continue
		}
		v := m.Get(sub.field)
		if !sub.field.IsList() {
			sub.plan.apply(v.Message(), e)
			continue
		}
		for i := range v.List().Len() {
			sub.plan.apply(v.List().Get(i).Message(), e)
		}
	}
}

// set edits the fields that are set.
func set(m protoreflect.Message, fields []protoreflect.FieldDescriptor, f func(string) string) {
	if f == nil {
		return
	}
	for _, field := range fields {
		if m.Has(field) {
			m.Set(field, protoreflect.ValueOfString(f(m.Get(field).String())))
		}
	}
}
