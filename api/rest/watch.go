package rest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// maxWatches bounds the streams that are open here.
const maxWatches = 10_000

const eventsType = "text/event-stream"

// watch tells what happens to the tasks of a topic, as events or as lines, until the client
// goes. Each change has the cursor behind it, from which another watch goes on.
func (a *api) watch(w http.ResponseWriter, r *http.Request, params map[string]string) {
	done, ok := a.beginWatch(w, r)
	if !ok {
		return
	}
	defer done()
	ask, p := watchOf(r)
	if p != nil {
		p.write(w, r)
		return
	}
	ask.Topic = params["topic"]
	stream, err := a.queue.WatchTasks(r.Context(), ask)
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	first, err := stream.Recv() // it comes at once
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	as := style(events{})
	if accepts(r, linesType) {
		as = lines{}
	}
	out := newFeed(w, as.contentType())
	if out.send(as.hello(first.Cursor)) == nil {
		follow(stream, first.Cursor, as, out, w)
	}
}

// beginWatch counts a watch until it is done. It answers one that is too many.
func (a *api) beginWatch(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	if a.watches.Add(1) > maxWatches {
		a.watches.Add(-1)
		p := refuse(http.StatusTooManyRequests, "TOO_MANY_STREAMS", "", "this node has as many watches as it takes")
		p.Code, p.RetryAfter = codeNames[codes.ResourceExhausted], "1000"
		p.write(w, r)
		return nil, false
	}
	return func() { a.watches.Add(-1) }, true
}

// follow passes on what a watch sees.
func follow(stream grpc.ServerStreamingClient[ddqv1.WatchTasksResponse], cursor []byte, as style, out *feed, w http.ResponseWriter) {
	for {
		seen, err := stream.Recv()
		if err != nil {
			_ = out.send(as.end(problemOf(err).named(w))) // the client may be gone
			return
		}
		if out.send(page(seen, cursor, as)) != nil {
			return
		}
		cursor = seen.Cursor
	}
}

// page is a response that follows a cursor. The cursor behind a change in the middle is
// that of before, with the places of the changes since in each shard: see PROTOCOL.md.
func page(seen *ddqv1.WatchTasksResponse, before []byte, as style) (text []byte) {
	if len(seen.Changes) == 0 {
		return as.idle(seen.Cursor)
	}
	at := make(map[int32]int64)
	for i, change := range seen.Changes {
		behind := seen.Cursor
		if at[change.Shard] = change.Position; i+1 < len(seen.Changes) {
			behind = slices.Clone(before)
			for shard, position := range at {
				behind = binary.AppendUvarint(binary.AppendUvarint(behind, uint64(shard)), uint64(position)) //nolint:gosec // never negative
			}
		}
		text = append(text, as.change(behind, change)...)
	}
	return text
}

// watchOf reads what to watch from a request.
func watchOf(r *http.Request) (*ddqv1.WatchTasksRequest, *problem) {
	q, p := queryOf(r)
	if p != nil {
		return nil, p
	}
	ask := &ddqv1.WatchTasksRequest{Ids: q.Values["id"]}
	q.Del("id")
	if ask.Cursor, p = cursorOf(q, r); p != nil {
		return nil, p
	}
	from, p := q.take("from")
	if p != nil {
		return nil, p
	}
	if from != "" {
		value, known := ddqv1.WatchFrom_value["WATCH_FROM_"+strings.ToUpper(strings.TrimPrefix(from, "WATCH_FROM_"))]
		if !known {
			return nil, malformed("from", "is now or oldest")
		}
		ask.From = ddqv1.WatchFrom(value)
	}
	for _, name := range q.Values["kinds"] {
		value, known := ddqv1.ChangeKind_value["CHANGE_KIND_"+strings.ToUpper(strings.TrimPrefix(name, "CHANGE_KIND_"))]
		if !known {
			return nil, malformed("kinds", "has no value "+name)
		}
		ask.Kinds = append(ask.Kinds, ddqv1.ChangeKind(value))
	}
	q.Del("kinds")
	if ask.Last, p = q.number("last"); p != nil {
		return nil, p
	}
	if r.Header.Get("Last-Event-ID") != "" { // a browser comes back to the address that it began with
		ask.From, ask.Last = ddqv1.WatchFrom_WATCH_FROM_UNSPECIFIED, 0
	}
	return ask, q.none()
}

// cursorOf is where a watch goes on: what the browser kept, or a parameter.
func cursorOf(q query, r *http.Request) ([]byte, *problem) {
	text, p := q.take("cursor")
	if p != nil {
		return nil, p
	}
	field := "cursor"
	if kept := r.Header.Get("Last-Event-ID"); kept != "" { // it is later than that of the address
		text, field = kept, "Last-Event-ID"
	}
	cursor, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "BAD_CURSOR", field, "is not a cursor of a watch")
	}
	return cursor, nil
}

func accepts(r *http.Request, want string) bool {
	for _, accept := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(accept, ",") {
			if given, _, err := mime.ParseMediaType(one); err == nil && given == want {
				return true
			}
		}
	}
	return false
}

// style is how a watch is written.
type style interface {
	contentType() string
	hello(cursor []byte) []byte
	change(behind []byte, c *ddqv1.TaskChange) []byte
	idle(cursor []byte) []byte
	end(p *problem) []byte
}

func cursorText(cursor []byte) string { return base64.RawURLEncoding.EncodeToString(cursor) }

// events are those of the browser's EventSource.
type events struct{}

func (events) contentType() string { return eventsType }

func (events) hello(cursor []byte) []byte {
	return []byte("retry: 1000\nid: " + cursorText(cursor) + "\nevent: cursor\ndata: {}\n\n")
}

func (events) change(behind []byte, c *ddqv1.TaskChange) []byte {
	return []byte("id: " + cursorText(behind) + "\nevent: change\ndata: " + string(messageText(c)) + "\n\n")
}

// idle has no data, so that nothing is told to the page, but where it is.
func (events) idle(cursor []byte) []byte { return []byte("id: " + cursorText(cursor) + "\n:\n\n") }

func (events) end(p *problem) []byte {
	name := "error"
	if p.Status == http.StatusServiceUnavailable {
		name = "drain" // another node goes on
	}
	return []byte("event: " + name + "\ndata: " + string(line(p)) + "\n")
}

// lines are a JSON object each.
type lines struct{}

type watchLine struct {
	Cursor string          `json:"cursor,omitempty"`
	Change json.RawMessage `json:"change,omitempty"`
	Error  *problem        `json:"error,omitempty"`
}

func (lines) contentType() string        { return linesType }
func (lines) hello(cursor []byte) []byte { return line(watchLine{Cursor: cursorText(cursor)}) }
func (lines) idle(cursor []byte) []byte  { return line(watchLine{Cursor: cursorText(cursor)}) }
func (lines) end(p *problem) []byte      { return line(watchLine{Error: p}) }

func (lines) change(behind []byte, c *ddqv1.TaskChange) []byte {
	return line(watchLine{Cursor: cursorText(behind), Change: messageText(c)})
}
