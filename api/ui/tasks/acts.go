package tasks

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// taskForm is what every form about a task sends.
type taskForm struct {
	topic, id string
	version   int64 // that the visitor saw; 0: any
}

func readTaskForm(form url.Values) (f taskForm, err error) {
	f.topic = form.Get("topic")
	if f.id, err = frame.Required(form, "id"); err != nil {
		return f, err
	}
	f.version, err = frame.Number(form, "version")
	return f, err
}

func (f *taskForm) page() string { return frame.Link("task", "topic", f.topic, "id", f.id) }

// onTask is an action whose form is about a task.
func onTask(form url.Values, did string, do func(*taskForm) error) (string, string, error) {
	f, err := readTaskForm(form)
	if err != nil {
		return "", "", err
	}
	return f.page(), did, do(&f)
}

func (s *section) promoteTask(ctx context.Context, form url.Values) (string, string, error) {
	return onTask(form, "promoted", func(f *taskForm) error {
		_, err := s.queue.PromoteTask(ctx, &ddqv1.PromoteTaskRequest{Topic: f.topic, Id: f.id, IfVersion: f.version})
		return err
	})
}

func (s *section) rescheduleTask(ctx context.Context, form url.Values) (string, string, error) {
	return onTask(form, "rescheduled", func(f *taskForm) error {
		delay, err := time.ParseDuration(form.Get("delay"))
		if err != nil {
			return status.Error(codes.InvalidArgument, "a delay is such as 90s, 15m or 36h")
		}
		_, err = s.queue.RescheduleTask(ctx, &ddqv1.RescheduleTaskRequest{
			Topic: f.topic, Id: f.id, IfVersion: f.version, When: &ddqv1.RescheduleTaskRequest_Delay{Delay: durationpb.New(delay)},
		})
		return err
	})
}

func (s *section) cancelTask(ctx context.Context, form url.Values) (page, did string, err error) {
	page, _, err = onTask(form, "", func(f *taskForm) error {
		r, err := s.queue.CancelTask(ctx, &ddqv1.CancelTaskRequest{Topic: f.topic, Id: f.id, WaitMs: time.Second.Milliseconds()})
		switch r.GetOutcome() {
		case ddqv1.CancelOutcome_CANCEL_OUTCOME_REQUESTED:
			did = "cancelling"
		case ddqv1.CancelOutcome_CANCEL_OUTCOME_TOO_LATE:
			did = "late"
		default:
			did = "cancelled"
		}
		return err
	})
	return page, did, err
}

// deleteTask leads to the tasks of the topic. That the task is gone already is no error: the form
// may have been sent twice.
func (s *section) deleteTask(ctx context.Context, form url.Values) (string, string, error) {
	_, did, err := onTask(form, "deleted", func(f *taskForm) error {
		_, err := s.queue.DeleteTask(ctx, &ddqv1.DeleteTaskRequest{Topic: f.topic, Id: f.id})
		return err
	})
	if status.Code(err) == codes.NotFound {
		did, err = "gone", nil
	}
	return frame.Link("tasks", "topic", form.Get("topic")), did, err
}

func (s *section) requeueTask(ctx context.Context, form url.Values) (string, string, error) {
	return onTask(form, "requeued", func(f *taskForm) error {
		r, err := s.admin.RequeueDeadLetters(ctx, &ddqv1.RequeueDeadLettersRequest{Topic: f.topic, Ids: []string{f.id}})
		if err == nil && len(r.GetNotFound()) > 0 {
			return status.Error(codes.FailedPrecondition, "it is no dead letter any more")
		}
		return err
	})
}
