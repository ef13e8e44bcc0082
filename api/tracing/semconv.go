package tracing

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/ddq-io/ddq/api/worker"
)

// The semantic conventions of OpenTelemetry for messaging, as this package follows them. They are
// not stable, so their names are here and nowhere else.
const (
	keySystem      = attribute.Key("messaging.system")
	keyDestination = attribute.Key("messaging.destination.name")
	keyMessage     = attribute.Key("messaging.message.id")
	keyBatch       = attribute.Key("messaging.batch.message_count")
	keyOperation   = attribute.Key("messaging.operation.name")
	keyType        = attribute.Key("messaging.operation.type")
	keyError       = attribute.Key("error.type")

	keyAttempt = attribute.Key("ddq.attempt")
	keyCreated = attribute.Key("ddq.created") // when the task was enqueued, of a span that begins a trace
)

// What is done with a task, which is also the type of the operation but for its end.
const (
	opSend    = "send"
	opProcess = "process"
	opAck     = "ack"
	opNack    = "nack"

	typeSettle = "settle" // of ack and nack
)

// operation are the attributes of every span.
func operation(name, topic string) []attribute.KeyValue {
	kind := name
	if name == opAck || name == opNack {
		kind = typeSettle
	}
	return []attribute.KeyValue{keySystem.String("ddq"), keyDestination.String(topic), keyOperation.String(name), keyType.String(kind)}
}

// attempt are the attributes of a span of an attempt.
func attempt(name string, t *worker.Task) []attribute.KeyValue {
	return append(operation(name, t.Topic), keyMessage.String(t.ID), keyAttempt.Int(t.Attempt))
}
