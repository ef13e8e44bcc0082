// Package encoding turns the values of a program into payloads of tasks, and back:
// [JSON], [Proto], or one of the program's own. A client.TypedTopic has one.
//
// Values that are equal should have equal payloads: a task that is enqueued again under its ID
// is the same task only if its payload is the same. Those of this package see to it.
package encoding

// Encoding writes values as payloads and reads them. It is used concurrently.
type Encoding[T any] interface {
	Encode(value T) ([]byte, error)
	// Decode does not keep payload.
	Decode(payload []byte) (T, error)
}
