package tasks

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// payloadShown is how many bytes of a payload a page has.
const payloadShown = 64 << 10

// taskPage is a task: what it is, what became of it, and what it carries.
type taskPage struct {
	*ddqv1.Task
	Now      time.Time
	Timeline []moment
	Traces   string // see section
	Payload  body
	Result   body
	May      frame.May
}

// open reports whether the task is still to be done.
func (p *taskPage) open() bool { return p.GetFinishedAt() == nil }

// running reports whether a worker holds it.
func (p *taskPage) running() bool { return p.GetState() == ddqv1.TaskState_TASK_STATE_RUNNING }

// dead reports whether it is a dead letter.
func (p *taskPage) dead() bool {
	return p.GetState() == ddqv1.TaskState_TASK_STATE_DEAD || p.GetState() == ddqv1.TaskState_TASK_STATE_EXPIRED
}

// text reports whether the payload can be edited as text. Browsers make ends of lines of their own,
// which editTask takes back: that would change a payload with others.
func (p *taskPage) text() bool {
	return !p.GetMasked() && !p.Payload.Cut && p.Payload.Form != "bytes" && !bytes.ContainsRune(p.GetPayload(), '\r')
}

// moment is a point of a task's life.
type moment struct {
	At    *timestamppb.Timestamp
	What  string
	Late  time.Duration // of a beginning: after its due time; 0 when that is not known
	Who   string
	Error string
	Trace string // id of that in which it was recorded, in hex; empty: in none
	Ahead bool   // it is yet to come
}

// body is bytes as they are shown.
type body struct {
	Text string
	Form string // text, JSON, bytes
	Size int
	Cut  bool // there is more
}

func (s *section) task(ctx context.Context, query url.Values) (frame.View, error) {
	id, err := frame.Required(query, "id")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	r, err := s.queue.GetTask(ctx, &ddqv1.GetTaskRequest{Topic: query.Get("topic"), Id: id})
	if err != nil {
		return frame.View{}, err
	}
	t := r.GetTask()
	p := taskPage{Task: t, Now: now, Timeline: timeline(t, now), Traces: s.traces, Payload: shown(t.GetPayload()), Result: shown(t.GetResult()), May: frame.Who(ctx).On(t.GetTopic())}
	return frame.View{Title: "Task " + frame.Cut(id), Page: "overview", Live: true, Body: p.body()}, nil
}

// download is the payload of a task as it is.
func (s *section) download(ctx context.Context, query url.Values) (frame.File, error) {
	id, err := frame.Required(query, "id")
	if err != nil {
		return frame.File{}, err
	}
	r, err := s.queue.GetTask(ctx, &ddqv1.GetTaskRequest{Topic: query.Get("topic"), Id: id})
	switch {
	case err != nil:
		return frame.File{}, err
	case r.GetTask().GetMasked():
		return frame.File{}, status.Error(codes.PermissionDenied, "you may not see payloads of this topic")
	}
	return frame.File{Name: "payload-" + id, Body: r.GetTask().GetPayload()}, nil
}

// timeline is what happened to a task, and what will, in order.
func timeline(t *ddqv1.Task, now time.Time) (all []moment) {
	all = append(all, moment{At: t.GetCreatedAt(), What: "enqueued", Trace: traceOf(t.GetTraceparent())})
	due := moment{At: t.GetExecuteTime(), What: "due", Ahead: t.GetExecuteTime().AsTime().After(now)}
	attempts := t.GetAttempts()
	if len(attempts) == 0 {
		all = append(all, due)
	}
	for i, a := range attempts {
		began := moment{At: a.GetStartedAt(), What: "attempt " + frame.CountText(int64(a.GetNumber())), Who: onNode(a)}
		if due := dueOf(t, i); due != nil && began.At != nil {
			began.Late = max(0, began.At.AsTime().Sub(due.AsTime()))
		}
		all = append(all, began)
		if a.GetEndedAt() != nil {
			all = append(all, moment{At: a.GetEndedAt(), What: frame.StateText(a.GetOutcome()), Error: a.GetError(), Trace: hex.EncodeToString(a.GetTraceId())})
		}
	}
	switch {
	case t.GetFinishedAt() != nil:
		all = append(all, moment{At: t.GetFinishedAt(), What: frame.StateText(t.GetState()), Error: frame.StateText(t.GetDeadReason())})
	case t.GetHoldDeadline() != nil:
		all = append(all, moment{At: t.GetHoldDeadline(), What: "hold ends, unless it is extended", Ahead: true})
	case len(attempts) > 0:
		all = append(all, due)
	}
	return all
}

// dueOf is when a task was due at its i-th attempt, nil when that is not known. Of the one that runs it
// is the due time that the task has.
func dueOf(t *ddqv1.Task, i int) *timestamppb.Timestamp {
	a := t.GetAttempts()[i]
	if a.GetDueAt() == nil && a.GetEndedAt() == nil && i == len(t.GetAttempts())-1 {
		return t.GetExecuteTime()
	}
	return a.GetDueAt()
}

// traceOf is the id of the trace of a traceparent, empty for none.
func traceOf(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) > 3 {
		return parts[1]
	}
	return ""
}

func onNode(a *ddqv1.Attempt) string {
	if a.GetNode() == "" {
		return a.GetWorker()
	}
	return a.GetWorker() + " on " + a.GetNode()
}

// shown is a payload as people read it.
func shown(b []byte) body {
	out := body{Size: len(b), Form: "text"}
	var indented bytes.Buffer
	switch {
	case len(b) > payloadShown:
		b, out.Cut = b[:payloadShown], true
	case len(b) > 0 && (b[0] == '{' || b[0] == '[') && shallow(b) && json.Indent(&indented, b, "", "  ") == nil:
		b, out.Form = indented.Bytes(), "JSON"
	}
	if out.Text = string(b); !readable(b, out.Cut) {
		out.Form, out.Text = "bytes", hex.Dump(b)
	}
	return out
}

// mostIndented is how many bytes lines of JSON may begin with, in all.
const mostIndented = 4 * payloadShown

// shallow reports whether JSON may be broken into lines: where it is nested deep, these would have a thousand
// times as many bytes.
func shallow(b []byte) bool {
	depth, adds := 0, 0
	for _, c := range b {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
		default:
			continue
		}
		if adds += 2 * max(0, depth); adds > mostIndented {
			return false
		}
	}
	return true
}

// readable reports whether bytes are text. Of text that was cut the last character may be, too.
func readable(b []byte, cut bool) bool {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return cut && i > 0 && len(b)-i < utf8.UTFMax
		}
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		i += n
	}
	return true
}
