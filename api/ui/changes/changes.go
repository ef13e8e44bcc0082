package changes

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// longestID is how many bytes of an id may be asked for: no id is longer.
const longestID = 128

// fromOldest is what "from" says of a look that begins with the oldest change that is kept.
const fromOldest = "oldest"

// kinds are what may happen, in the order of a life.
var kinds = []ddqv1.ChangeKind{
	ddqv1.ChangeKind_CHANGE_KIND_ENQUEUED, ddqv1.ChangeKind_CHANGE_KIND_UPDATED, ddqv1.ChangeKind_CHANGE_KIND_HELD, ddqv1.ChangeKind_CHANGE_KIND_RELEASED,
	ddqv1.ChangeKind_CHANGE_KIND_RETRYING, ddqv1.ChangeKind_CHANGE_KIND_DONE, ddqv1.ChangeKind_CHANGE_KIND_DEAD, ddqv1.ChangeKind_CHANGE_KIND_REQUEUED,
	ddqv1.ChangeKind_CHANGE_KIND_CANCEL_REQUESTED, ddqv1.ChangeKind_CHANGE_KIND_DELETED,
}

// fields are those of the form, by what the server says is wrong.
var fields = map[string]string{"attributes": "attribute", "cursor": "cursor", "ids": "id", "kinds": "kind"}

// page is what happens to the tasks of a topic.
type page struct {
	Topic   string
	Query   url.Values // as it was asked for
	Wrong   frame.Mistakes
	Watched bool // the topic keeps what happens
	Expired bool // but not what comes behind the cursor any more
	policy  *ddqv1.TopicPolicy
	Now     time.Time
	Seen    seen
	May     frame.May
}

func (s *section) changes(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	about, err := s.admin.DescribeTopic(ctx, &ddqv1.DescribeTopicRequest{Name: topic})
	if err != nil {
		return frame.View{}, err
	}
	policy := about.GetTopic().GetPolicy()
	p := page{
		Topic: topic, Query: query, Wrong: frame.Mistakes{}, Watched: policy.GetWatchRetentionMs() > 0, policy: policy,
		Now: now, May: frame.Who(ctx).On(topic),
	}
	a := p.asked()
	a.rights = frame.Who(ctx).Rights()
	if p.Watched && len(p.Wrong) == 0 {
		if p.Seen, err = s.feeds.look(ctx, a); err != nil && !p.refused(err) {
			return frame.View{}, err
		}
	}
	return frame.View{Title: "Changes of " + frame.Cut(topic), Page: "overview", Live: len(p.Wrong) == 0 && !p.Expired, Code: p.code(), Body: p.body()}, nil
}

// code is that of the answer.
func (p *page) code() int {
	if p.Expired {
		return http.StatusGone
	}
	return p.Wrong.Code()
}

// asked reads what the query looks for.
func (p *page) asked() asked {
	a := asked{topic: p.Topic, id: p.Query.Get("id"), attribute: p.Query.Get("attribute")}
	a.kind, _ = frame.State(p.Wrong, "kind", p.Query.Get("kind"), kinds)
	if len(a.id) > longestID {
		p.Wrong.Add("id", "An id has at most 128 bytes.")
	}
	if key, _, ok := strings.Cut(a.attribute, "="); a.attribute != "" && (!ok || key == "") {
		p.Wrong.Add("attribute", "An attribute is such as tenant=acme.")
	}
	cursor, err := base64.RawURLEncoding.DecodeString(p.Query.Get("cursor"))
	if err != nil {
		p.Wrong.Add("cursor", "This is no cursor of a watch.")
	}
	a.cursor = string(cursor)
	a.oldest = a.cursor == "" && p.Query.Get("from") == fromOldest
	return a
}

// refused reports whether the server does not let the query be looked for, and why.
func (p *page) refused(err error) bool {
	switch {
	case frame.Reason(err) == "NOT_WATCHED": // since a moment
		p.Watched = false
		return true
	case frame.Reason(err) == "CURSOR_EXPIRED":
		p.Expired = true
		return true
	case status.Code(err) == codes.InvalidArgument:
		return p.Wrong.Take(err, fields)
	}
	return false
}
