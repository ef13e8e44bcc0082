package audit

import (
	"context"
	"encoding/json"
	"net"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ddq-io/ddq/api/auth"
)

const (
	// maxRequest is how many bytes of a request are written down.
	maxRequest = 16 << 10
	// maxItems is how many items of a list are: ids of tasks, say.
	maxItems = 100
)

// Call is what is written down of one.
type Call struct {
	Method  string
	Request any    // of a unary call; nil of a stream
	ID      string // of the request; empty: it has none, or none yet
}

func (c *Call) record(ctx context.Context, event string) *Record {
	r := &Record{Event: event, Method: c.Method, RequestID: c.ID, Address: addressOf(ctx)}
	if event != Refused { // nobody was asked who calls, so it is somebody of this machine
		r.Caller = auth.KindLocal.String()
	}
	if p := auth.From(ctx); p != nil {
		r.Caller, r.Token = p.Kind.String()+":"+p.Name, p.ID
		if p.Namespace != auth.DefaultNamespace {
			r.Namespace = p.Namespace
		}
	}
	if m, ok := c.Request.(proto.Message); ok {
		r.Request = textOf(m)
		r.Topic, r.Name = aboutOf(m.ProtoReflect())
	}
	return r
}

// maxAbout is how many bytes of a name are written down that need not be one.
const maxAbout = 256

// nameFields have the name or the id of what a request is about, in this order.
var nameFields = []protoreflect.Name{"name", "id", "audience"}

// aboutOf is the topic that a request is about, and the name or id of something there: those that the
// request has itself, or, where it has neither, a message in it.
func aboutOf(m protoreflect.Message) (topic, name string) {
	if topic, name = namesIn(m); topic != "" || name != "" {
		return topic, name
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Message() != nil && !f.IsList() && !f.IsMap() && m.Has(f) {
			if topic, name = namesIn(m.Get(f).Message()); topic != "" || name != "" {
				break
			}
		}
	}
	return topic, name
}

func namesIn(m protoreflect.Message) (topic, name string) {
	text := func(field protoreflect.Name) string {
		f := m.Descriptor().Fields().ByName(field)
		if f == nil || f.Kind() != protoreflect.StringKind || f.IsList() {
			return ""
		}
		found := m.Get(f).String()
		return found[:min(len(found), maxAbout)]
	}
	for _, field := range nameFields {
		if name = text(field); name != "" {
			break
		}
	}
	return text("topic"), name
}

// addressOf is the caller's host; empty for those of this process.
func addressOf(ctx context.Context) string {
	if from, known := auth.OriginOf(ctx); known {
		if !from.Addr.IsValid() {
			return ""
		}
		return from.Addr.String()
	}
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	return host
}

// textOf is a request without what is secret or large: no bytes fields, which are payloads and
// tokens, and of lists the first items.
func textOf(m proto.Message) json.RawMessage {
	m = proto.Clone(m)
	redact(m.ProtoReflect())
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil || len(text) > maxRequest {
		return json.RawMessage(`{"cut":true}`)
	}
	return text
}

func redact(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
		case f.Kind() == protoreflect.BytesKind:
			m.Clear(f)
		case f.IsList():
			list := v.List()
			if list.Len() > maxItems {
				list.Truncate(maxItems)
			}
			for i := range list.Len() {
				if f.Message() != nil {
					redact(list.Get(i).Message())
				}
			}
		case f.Message() != nil:
			redact(v.Message())
		}
		return true
	})
}
