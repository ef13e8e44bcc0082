package tasks

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// edit is what a visitor makes of a task: of the payload where it was shown as text, and of numbers.
type edit struct {
	topic, id string
	version   int64  // that they saw
	text      bool   // the payload is text
	payload   string // with ends of lines as Unix has them
	retries   string
	priority  string
}

func newEdit(p *taskPage) *edit {
	e := &edit{topic: p.GetTopic(), id: p.GetId(), version: p.GetVersion(), text: p.text(), retries: fmt.Sprint(p.GetMaxRetries()), priority: fmt.Sprint(p.GetPriority())}
	if e.text {
		e.payload = string(p.GetPayload())
	}
	return e
}

func readEdit(f *taskForm, form url.Values) *edit {
	return &edit{f.topic, f.id, f.version, form.Has("payload"), strings.ReplaceAll(form.Get("payload"), "\r\n", "\n"), form.Get("max_retries"), form.Get("priority")}
}

// form is where the edit is made.
func (e *edit) form() g.Node {
	return frame.Post("task/edit", h.Class("column"), frame.Hidden("topic", e.topic, "id", e.id, "version", fmt.Sprint(e.version)),
		g.Iff(e.text, func() g.Node { return h.Label(g.Text("Payload "), frame.TextArea("payload", "8", e.payload)) }),
		frame.Input("Retries", h.Name("max_retries"), h.Type("number"), h.Min("0"), h.Max("1000"), h.Required(), h.Value(e.retries)),
		frame.Input("Priority", h.Name("priority"), h.Type("number"), h.Required(), h.Value(e.priority)),
		frame.Button("Save"))
}

// request is the call that makes the edit.
func (e *edit) request() (*ddqv1.UpdateTaskRequest, error) {
	r := &ddqv1.UpdateTaskRequest{Topic: e.topic, Id: e.id, IfVersion: e.version, UpdateMask: new(fieldmaskpb.FieldMask)}
	if e.text {
		r.Payload = []byte(e.payload)
		r.UpdateMask.Paths = append(r.UpdateMask.Paths, "payload")
	}
	retries, err := strconv.ParseInt(e.retries, 10, 32)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "retries are a whole number")
	}
	priority, err := strconv.ParseInt(e.priority, 10, 32)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "a priority is a whole number")
	}
	r.MaxRetries, r.Priority = new(int32(retries)), int32(priority)
	r.UpdateMask.Paths = append(r.UpdateMask.Paths, "max_retries", "priority")
	return r, nil
}

// editTask changes what its form has. When somebody was faster, it shows what they made of the task.
func (s *section) editTask(ctx context.Context, form url.Values) (string, string, error) {
	return onTask(form, "edited", func(f *taskForm) error {
		e := readEdit(f, form)
		r, err := e.request()
		if err != nil {
			return err
		}
		if _, err = s.queue.UpdateTask(ctx, r); status.Code(err) != codes.Aborted {
			return err
		}
		is, failed := s.queue.GetTask(ctx, &ddqv1.GetTaskRequest{Topic: f.topic, Id: f.id})
		if failed != nil {
			return err
		}
		return e.question(is.GetTask())
	})
}

// question asks what is to become of a task that somebody else has changed.
func (e *edit) question(is *ddqv1.Task) error {
	var all []frame.Difference
	add := func(name, is, wants string) {
		if is != wants {
			all = append(all, frame.Difference{Name: name, Was: is, Is: is, Wants: wants})
		}
	}
	if e.text {
		add("payload", string(is.GetPayload()), e.payload)
	}
	add("retries", fmt.Sprint(is.GetMaxRetries()), e.retries)
	add("priority", fmt.Sprint(is.GetPriority()), e.priority)
	e.version = is.GetVersion()
	return &frame.Question{View: frame.View{Title: "Task " + frame.Cut(e.id), Page: "overview", Body: g.Group{
		h.P(frame.Anchor("The task as it is", "task", "topic", e.topic, "id", e.id)),
		frame.Alert("Nothing was changed: somebody else changed the task since you looked."),
		frame.Differences(all),
		h.H2(g.Text("What you want")), e.form(),
	}}}
}
