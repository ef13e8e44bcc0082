package guard

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// payloadBytes is how many bytes of payloads a request brings: those of its tasks, and what else callers keep
// here without ddq reading it, such as data of recipients.
func payloadBytes(request any) (n int) {
	switch r := request.(type) {
	case *ddqv1.EnqueueRequest:
		return len(r.GetPayload())
	case interface {
		GetTasks() []*ddqv1.EnqueueRequest
	}:
		for _, task := range r.GetTasks() {
			n += len(task.GetPayload())
		}
		return n
	case proto.Message:
		return bytesIn(r.ProtoReflect())
	}
	return 0
}

// marks are the fields of bytes that are no payload.
var marks = map[protoreflect.Name]bool{"payload_fingerprint": true, "hold_token": true, "cursor": true}

func bytesIn(m protoreflect.Message) (n int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, one protoreflect.Value) bool {
				n += bytesOf(f.MapValue(), one)
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				n += bytesOf(f, v.List().Get(i))
			}
		default:
			n += bytesOf(f, v)
		}
		return true
	})
	return n
}

// bytesOf is how many bytes of payloads one value of a field has.
func bytesOf(f protoreflect.FieldDescriptor, v protoreflect.Value) int {
	switch {
	case f.Message() != nil:
		return bytesIn(v.Message())
	case f.Kind() == protoreflect.BytesKind && !marks[f.Name()]:
		return len(v.Bytes())
	}
	return 0
}
