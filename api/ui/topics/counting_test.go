package topics

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// busy is a server with topics, of which full has too much to count.
type busy struct {
	grpc.ClientConnInterface
	asked map[string]int // for a histogram
}

func (b *busy) Invoke(ctx context.Context, method string, request, response any, _ ...grpc.CallOption) error {
	switch r := response.(type) {
	case *ddqv1.DescribeTopicResponse:
		name := request.(*ddqv1.DescribeTopicRequest).GetName()
		r.Topic, r.Depth = &ddqv1.Topic{Name: name}, &ddqv1.Depth{Scheduled: 10_000_000}
	case *ddqv1.DueHistogramResponse:
		topic := request.(*ddqv1.DueHistogramRequest).GetTopic()
		if b.asked[topic]++; topic == "full" {
			<-ctx.Done()
			return ctx.Err()
		}
		r.Counts = make([]int64, 60)
	}
	return nil
}

// nobody has to log in.
type nobody struct{ frame.Logins }

func (nobody) On() bool { return false }

func TestATopicWithTooMuchToCountSlowsNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &busy{asked: make(map[string]int)}
		u := frame.New(conn, nobody{}, slog.New(slog.DiscardHandler), New(conn, nil))
		look := func(topic string) time.Duration {
			began, w := time.Now(), httptest.NewRecorder()
			u.ServeHTTP(w, httptest.NewRequest(http.MethodGet, frame.Prefix+"topic?name="+topic, nil))
			if text := w.Body.String(); w.Code != 200 || strings.Contains(text, "to be counted here") != (topic == "full") {
				t.Fatalf("%d\n%s", w.Code, text)
			}
			return time.Since(began)
		}
		if took := look("full"); took != countPatience {
			t.Errorf("the first page took %v", took)
		}
		for range 10 {
			if took := look("full") + look("mail"); took != 0 {
				t.Errorf("pages took %v", took)
			}
		}
		if conn.asked["full"] != 1 || conn.asked["mail"] != 20 {
			t.Errorf("asked %v", conn.asked)
		}
		time.Sleep(countAgain)
		look("full")
		if conn.asked["full"] != 2 {
			t.Error("the topic is never tried again")
		}
	})
}
