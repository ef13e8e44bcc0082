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

// topicsShown is how many topics a page has; each costs two calls.
const topicsShown = 50

// overview is what the first page shows.
type overview struct {
	Server  *ddqv1.DescribeServerResponse
	Now     time.Time // on the store's clock
	Topics  []topicRow
	Next    string // page token; empty on the last page
	Due     *frame.Columns
	Crowded []string // topics of which too much is due to be counted in Due
	Create  bool     // the visitor may make topics
}

// topicRow is a topic with its tasks by state.
type topicRow struct {
	*ddqv1.Topic
	Depth *ddqv1.Depth
}

const nextMinute = "Due in the next minute, by second"

func (s *section) overview(ctx context.Context, query url.Values) (frame.View, error) {
	server, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.admin.ListTopics(ctx, &ddqv1.ListTopicsRequest{PageSize: topicsShown, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	o := overview{Server: server, Now: now, Next: list.GetNextPageToken(), Create: frame.Who(ctx).Topics()}
	countUntil := time.Now().Add(countInAll)
	for _, t := range list.GetTopics() {
		about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: t.GetName()})
		if status.Code(err) == codes.NotFound {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return frame.View{}, err
		}
		var due *frame.Columns
		if time.Now().Before(countUntil) {
			if due, err = s.due(ctx, t.GetName(), nextMinute, now.Truncate(time.Second), time.Second, 60); err != nil {
				return frame.View{}, err
			}
		}
		o.Topics = append(o.Topics, topicRow{about.GetTopic(), about.GetDepth()})
		if due == nil {
			o.Crowded = append(o.Crowded, t.GetName())
			continue
		}
		o.Due = o.Due.Add(due)
	}
	return frame.View{Title: "Overview", Page: "overview", Live: true, Body: o}, nil
}
