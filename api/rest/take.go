package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// giveBack is how long a task that nobody got may take to be released.
const giveBack = 5 * time.Second

// take waits for one task and answers with its payload; the rest is in headers, so that
// a shell can be a worker.
func (a *api) take(w http.ResponseWriter, r *http.Request, params map[string]string) {
	ask, p := takeOf(r)
	if p != nil {
		p.write(w, r)
		return
	}
	ask.Topic = params["topic"]
	w.Header().Set("X-Accel-Buffering", "no")
	held, err := a.queue.Retrieve(r.Context(), ask)
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	if len(held.Deliveries) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	d := held.Deliveries[0]
	if r.Context().Err() != nil || hand(w, d) != nil {
		a.release(r.Context(), d)
	}
}

func takeOf(r *http.Request) (*ddqv1.RetrieveRequest, *problem) {
	q, p := queryOf(r)
	if p != nil {
		return nil, p
	}
	ask := &ddqv1.RetrieveRequest{MaxTasks: 1}
	if ask.WaitMs, p = q.span("wait"); p != nil {
		return nil, p
	}
	if ask.VisibilityTimeoutMs, p = q.span("visibility_timeout"); p != nil {
		return nil, p
	}
	if ask.Worker, p = q.take("worker"); p != nil {
		return nil, p
	}
	return ask, q.none()
}

// hand writes a task, and returns why it did not reach the network.
func hand(w http.ResponseWriter, d *ddqv1.Delivery) error {
	h, task := w.Header(), d.Task
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(task.Payload)))
	h.Set("Ddq-Task-Id", url.PathEscape(task.Id)) // as it is in paths
	h.Set(holdTokenHeader, base64.RawURLEncoding.EncodeToString(d.HoldToken))
	h.Set("Ddq-Hold-Ms", strconv.FormatInt(d.HoldMs, 10))
	h.Set("Ddq-Retry-Count", strconv.Itoa(int(task.RetryCount)))
	h.Set("Ddq-Execute-Time", task.ExecuteTime.AsTime().Format(time.RFC3339Nano))
	if len(task.Attributes) > 0 {
		h.Set("Ddq-Attributes", base64.RawURLEncoding.EncodeToString(attributesJSON(task.Attributes)))
	}
	if task.Traceparent != "" {
		h.Set("Traceparent", task.Traceparent)
	}
	if task.Tracestate != "" {
		h.Set("Tracestate", task.Tracestate)
	}
	if _, err := w.Write(task.Payload); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

func attributesJSON(attributes []*ddqv1.Attribute) []byte {
	values := make(map[string]string, len(attributes))
	for _, attribute := range attributes {
		values[attribute.Key] = attribute.Value
	}
	text, err := json.Marshal(values)
	if err != nil { // text always marshals
		panic(err)
	}
	return text
}

// release gives a task back as if it had not been taken. If that fails its hold runs out.
func (a *api) release(ctx context.Context, d *ddqv1.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
	defer cancel()
	_, _ = a.queue.Nack(ctx, &ddqv1.NackRequest{
		Topic: d.Task.Topic,
		Nack:  &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Release: true},
	})
}
