package rest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// How often an operation is looked at that is watched, whose node tells once a second; and how long a
// watch is silent at most.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
	maxSilent = 5 * time.Second
)

// watchOperation tells how far an operation is whenever that changes, as events or as lines, until it has ended
// or the client goes. Each event has an id that says what was told, and who brings that is not told so again.
func (a *api) watchOperation(w http.ResponseWriter, r *http.Request, params map[string]string) {
	done, ok := a.beginWatch(w, r)
	if !ok {
		return
	}
	defer done()
	q, p := queryOf(r)
	if p == nil {
		p = q.none()
	}
	if p != nil {
		p.write(w, r)
		return
	}
	ask := &ddqv1.GetOperationRequest{Topic: params["topic"], Id: params["id"]}
	seen, err := a.changes.GetOperation(r.Context(), ask)
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	known := r.Header.Get("Last-Event-ID")
	if seen.Operation.Progress.GetDone() && known == operationMark(seen.Operation) {
		w.WriteHeader(http.StatusNoContent) // by which a browser knows not to come again
		return
	}
	as := operationFeed{messagesIn(accepts(r, linesType))}
	out := newFeed(w, as.contentType())
	if err := a.followOperation(r.Context(), ask, seen.Operation, known, as, out); err != nil {
		_ = out.send(as.end(problemOf(err).named(w))) // the client may be gone
	}
}

// followOperation passes on what an operation does, from how it is seen on, but what is known of it. It returns
// nil at the end of the operation, and when the client does not read.
func (a *api) followOperation(ctx context.Context, ask *ddqv1.GetOperationRequest, o *ddqv1.Operation, known string, as operationFeed, out *feed) error {
	told := time.Now()
	if out.send(as.begin()) != nil {
		return nil
	}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		text, mark := []byte(nil), operationMark(o)
		switch {
		case mark != known:
			text = as.message("operation", mark, o)
		case time.Since(told) >= maxSilent:
			text = as.silent()
		}
		if o.Progress.GetDone() {
			_ = out.send(append(text, as.over()...)) // the client may be gone
			return nil
		}
		if len(text) > 0 {
			if out.send(text) != nil {
				return nil
			}
			known, told = mark, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		next, err := a.changes.GetOperation(ctx, ask)
		if err != nil {
			return err
		}
		o = next.Operation
	}
}

// operationMark stands for what is told of an operation.
func operationMark(o *ddqv1.Operation) string {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(o)
	if err != nil { // the server made it
		panic(err)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// operationFeed is how operations are written.
type operationFeed struct{ messages }

func (f operationFeed) begin() []byte {
	if f.lines {
		return nil
	}
	return []byte("retry: 1000\n")
}

// silent is told where nothing is new, so that a broken connection is noticed. Lines have nothing that says nothing.
func (f operationFeed) silent() []byte {
	if f.lines {
		return []byte("\n")
	}
	return []byte(":\n\n")
}

// over is what comes behind the end of an operation.
func (f operationFeed) over() []byte {
	if f.lines {
		return nil
	}
	return []byte("event: end\ndata: {}\n\n")
}
