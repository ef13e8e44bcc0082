package rest

import (
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// typeAttribute is where the type of a payload is kept when a producer asks for that.
const typeAttribute = "content-type"

// raw enqueues a task whose payload is the body, of whatever type it is.
func (a *api) raw(w http.ResponseWriter, r *http.Request, params map[string]string) {
	task := new(ddqv1.EnqueueRequest)
	if p := a.readRaw(w, r, task); p != nil {
		p.write(w, r)
		return
	}
	task.Topic = params["topic"]
	done, err := a.queue.Enqueue(r.Context(), task)
	if err != nil {
		problemOf(err).asAsked(r).write(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	enqueued(w, done)
	writeMessage(w, done)
}

func (a *api) readRaw(w http.ResponseWriter, r *http.Request, task *ddqv1.EnqueueRequest) *problem {
	if p := checkEncoding(r); p != nil {
		return p
	}
	q, p := queryOf(r)
	if p != nil {
		return p
	}
	keep, p := q.flag("keep_type")
	if p != nil {
		return p
	}
	if at, p := q.take("at"); p != nil {
		return p
	} else if at != "" {
		q.Add("execute_time", at)
	}
	if p := q.into(task, "topic", "payload", "attributes", "idempotency", "traceparent", "tracestate"); p != nil {
		return p
	}
	if given := r.Header.Get("Content-Type"); keep && given != "" {
		task.Attributes = []*ddqv1.Attribute{{Key: typeAttribute, Value: given}}
	}
	key, p := idempotencyKey(&route{input: task.ProtoReflect().Descriptor()}, r)
	if p != nil {
		return p
	}
	if key != "" {
		if p := setKey(key)(task, nil); p != nil {
			return p
		}
	}
	if p := setTrace(r.Header)(task, nil); p != nil {
		return p
	}
	task.Payload, p = limitBody(w, r).all()
	return p
}

// writeMessage ends an answer with a message. The client may be gone.
func writeMessage(w http.ResponseWriter, m proto.Message) {
	text, err := marshaler{}.Marshal(m)
	if err != nil {
		panic(err) // the server made it
	}
	_, _ = w.Write(text)
}
