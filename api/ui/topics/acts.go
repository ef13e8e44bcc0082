package topics

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

func topicPath(name string) string { return frame.Link("topic", "name", name) }

// onTopic is an action whose form is about a topic.
func onTopic(form url.Values, did string, do func(name string) error) (string, string, error) {
	name, err := frame.Required(form, "name")
	if err != nil {
		return "", "", err
	}
	return topicPath(name), did, do(name)
}

func (s *section) createTopic(ctx context.Context, form url.Values) (string, string, error) {
	return onTopic(form, "created", func(name string) error {
		_, err := s.admin.CreateTopic(ctx, &ddqv1.CreateTopicRequest{Name: name})
		return err
	})
}

func (s *section) pauseTopic(ctx context.Context, form url.Values) (string, string, error) {
	return onTopic(form, "paused", func(name string) error {
		_, err := s.admin.PauseTopic(ctx, &ddqv1.PauseTopicRequest{Name: name, Delivery: form.Has("delivery"), Enqueue: form.Has("enqueue")})
		return err
	})
}

func (s *section) resumeTopic(ctx context.Context, form url.Values) (string, string, error) {
	return onTopic(form, "resumed", func(name string) error {
		var ramp time.Duration
		if text := form.Get("ramp"); text != "" {
			var err error
			if ramp, err = time.ParseDuration(text); err != nil {
				return status.Error(codes.InvalidArgument, "a time is such as 90s or 15m")
			}
		}
		_, err := s.admin.ResumeTopic(ctx, &ddqv1.ResumeTopicRequest{Name: name, RampMs: ramp.Milliseconds()})
		return err
	})
}

func (s *section) purgeTopic(ctx context.Context, form url.Values) (string, string, error) {
	return onTopic(form, "purged", func(name string) error {
		if err := frame.Typed(form, name); err != nil {
			return err
		}
		_, err := s.admin.PurgeTopic(ctx, &ddqv1.PurgeTopicRequest{Name: name})
		return err
	})
}

// deleteTopic leads to the topics.
func (s *section) deleteTopic(ctx context.Context, form url.Values) (string, string, error) {
	_, did, err := onTopic(form, "deleted", func(name string) error {
		if err := frame.Typed(form, name); err != nil {
			return err
		}
		_, err := s.admin.DeleteTopic(ctx, &ddqv1.DeleteTopicRequest{Name: name, Force: form.Has("force")})
		return err
	})
	return frame.Link(""), did, err
}
