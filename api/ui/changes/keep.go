package changes

import (
	"context"
	"net/url"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// keep makes a topic keep what happens to its tasks. One that does already keeps it for as long as before.
func (s *section) keep(ctx context.Context, form url.Values) (string, string, error) {
	topic, err := frame.Required(form, "topic")
	if err != nil {
		return "", "", err
	}
	about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: topic})
	if err != nil {
		return "", "", err
	}
	if about.GetTopic().GetPolicy().GetWatchRetentionMs() == 0 {
		version := about.GetTopic().GetVersion()
		_, err = s.admin.ConfigureTopic(ctx, &ddqv1.ConfigureTopicRequest{
			Name: topic, IfVersion: &version, Policy: &ddqv1.TopicPolicy{WatchRetentionMs: new(time.Hour.Milliseconds())},
		})
	}
	return frame.Link("changes", "topic", topic), "configured", err
}
