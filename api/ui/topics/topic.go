package topics

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// topicPage is a topic: its tasks, what is due when, and its policy.
type topicPage struct {
	*ddqv1.DescribeTopicResponse
	Now          time.Time
	Minute, Hour *frame.Columns
	Policy       string
	May          frame.May
}

func (s *section) topic(ctx context.Context, query url.Values) (frame.View, error) {
	name, err := frame.Required(query, "name")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: name})
	if err != nil {
		return frame.View{}, err
	}
	p := topicPage{DescribeTopicResponse: about, Now: now, May: frame.Who(ctx).On(name)}
	if p.Minute, err = s.due(ctx, name, nextMinute, now.Truncate(time.Second), time.Second, 60); err != nil {
		return frame.View{}, err
	}
	if p.Hour, err = s.due(ctx, name, "Due in the next hour, by minute", now.Truncate(time.Minute), time.Minute, 60); err != nil {
		return frame.View{}, err
	}
	p.Policy = protojson.MarshalOptions{Multiline: true, Indent: "  ", UseProtoNames: true}.Format(about.GetTopic().GetPolicy())
	return frame.View{Title: "Topic " + frame.Cut(name), Page: "overview", Live: true, Body: p}, nil
}
