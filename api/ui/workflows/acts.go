package workflows

import (
	"context"
	"net/url"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// onWorkflow is an action whose form is about a workflow.
func onWorkflow(form url.Values, did string, do func(topic, id string) error) (string, string, error) {
	id, err := frame.Required(form, "id")
	if err != nil {
		return "", "", err
	}
	topic := form.Get("topic")
	return frame.Link("workflow", "topic", topic, "id", id), did, do(topic, id)
}

func (s *section) cancelWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "cancelled", func(topic, id string) error {
		_, err := s.workflows.CancelWorkflow(ctx, &ddqv1.CancelWorkflowRequest{Topic: topic, Id: id, Note: form.Get("note")})
		return err
	})
}

func (s *section) retryWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "retried", func(topic, id string) error {
		r := &ddqv1.RetryWorkflowRequest{Topic: topic, Id: id}
		if step := form.Get("step"); step != "" {
			r.Steps = []string{step}
		}
		_, err := s.workflows.RetryWorkflow(ctx, r)
		return err
	})
}

func (s *section) pauseWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "paused", func(topic, id string) error {
		_, err := s.workflows.PauseWorkflow(ctx, &ddqv1.PauseWorkflowRequest{Topic: topic, Id: id, By: frame.Who(ctx).Name, Note: form.Get("note")})
		return err
	})
}

func (s *section) resumeWorkflow(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "resumed", func(topic, id string) error {
		_, err := s.workflows.ResumeWorkflow(ctx, &ddqv1.ResumeWorkflowRequest{Topic: topic, Id: id, Note: form.Get("note")})
		return err
	})
}

func (s *section) skipStep(ctx context.Context, form url.Values) (string, string, error) {
	return onWorkflow(form, "skipped", func(topic, id string) error {
		n, err := frame.Number(form, "copy")
		if err != nil {
			return err
		}
		_, err = s.workflows.SkipStep(ctx, &ddqv1.SkipStepRequest{Topic: topic, Id: id, Step: form.Get("step"), Copy: int32(n)}) //nolint:gosec // the server refuses a copy that is none
		return err
	})
}
