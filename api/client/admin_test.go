package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func (f *fakeServer) ask(method string, r proto.Message) error {
	f.mu.Lock()
	f.asked = append(f.asked, r)
	f.mu.Unlock()
	return f.called(method)
}

func (f *fakeServer) lastAsked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return squeeze(fmt.Sprint(f.asked[len(f.asked)-1]))
}

func (f *fakeServer) GetTask(_ context.Context, r *ddqv1.GetTaskRequest) (*ddqv1.GetTaskResponse, error) {
	if err := f.ask("GetTask", r); err != nil {
		return nil, err
	}
	return &ddqv1.GetTaskResponse{Task: &ddqv1.Task{
		Id: r.GetId(), Topic: "mail", State: ddqv1.TaskState_TASK_STATE_DEAD, DeadReason: ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES,
		ExecuteTime: timestamppb.New(time.Unix(7, 0)), Attributes: []*ddqv1.Attribute{{Key: "k", Value: "v"}},
	}}, nil
}

func (f *fakeServer) DeleteTask(_ context.Context, r *ddqv1.DeleteTaskRequest) (*ddqv1.DeleteTaskResponse, error) {
	return &ddqv1.DeleteTaskResponse{Topic: "found"}, f.ask("DeleteTask", r)
}

func (f *fakeServer) RescheduleTask(_ context.Context, r *ddqv1.RescheduleTaskRequest) (*ddqv1.RescheduleTaskResponse, error) {
	return &ddqv1.RescheduleTaskResponse{Topic: "found", ExecuteTime: timestamppb.New(time.Unix(7, 0))}, f.ask("RescheduleTask", r)
}

func (f *fakeServer) ListTasks(_ context.Context, r *ddqv1.ListTasksRequest) (*ddqv1.ListTasksResponse, error) {
	if err := f.ask("ListTasks", r); err != nil {
		return nil, err
	}
	switch r.GetPageToken() {
	case "":
		return &ddqv1.ListTasksResponse{Tasks: []*ddqv1.Task{{Id: "a"}, {Id: "b"}}, NextPageToken: "2"}, nil
	case "2": // a page may be empty without being the last
		return &ddqv1.ListTasksResponse{NextPageToken: "3"}, nil
	case "3":
		return &ddqv1.ListTasksResponse{Tasks: []*ddqv1.Task{{Id: "c"}}, NextPageToken: "4"}, nil
	}
	return nil, status.Error(codes.InvalidArgument, "bad page token")
}

func (f *fakeServer) CreateTopic(_ context.Context, r *ddqv1.CreateTopicRequest) (*ddqv1.CreateTopicResponse, error) {
	return &ddqv1.CreateTopicResponse{Topic: &ddqv1.Topic{Name: r.GetName(), Policy: r.GetPolicy(), Version: 1}}, f.ask("CreateTopic", r)
}

func (f *fakeServer) DescribeTopic(_ context.Context, r *ddqv1.DescribeTopicRequest) (*ddqv1.DescribeTopicResponse, error) {
	return &ddqv1.DescribeTopicResponse{
		Topic: &ddqv1.Topic{Name: r.GetName()}, Depth: &ddqv1.Depth{Scheduled: 1, Dead: 2}, Durability: "synced",
	}, f.ask("DescribeTopic", r)
}

func (f *fakeServer) RequeueDeadLetters(_ context.Context, r *ddqv1.RequeueDeadLettersRequest) (*ddqv1.RequeueDeadLettersResponse, error) {
	return &ddqv1.RequeueDeadLettersResponse{Requeued: 1, NotFound: []string{"b"}}, f.ask("RequeueDeadLetters", r)
}

func (f *fakeServer) DeleteDeadLetters(_ context.Context, r *ddqv1.DeleteDeadLettersRequest) (*ddqv1.DeleteDeadLettersResponse, error) {
	return &ddqv1.DeleteDeadLettersResponse{Deleted: 3}, f.ask("DeleteDeadLetters", r)
}

func (f *fakeServer) DescribeServer(_ context.Context, r *ddqv1.DescribeServerRequest) (*ddqv1.DescribeServerResponse, error) {
	return &ddqv1.DescribeServerResponse{Node: "n1", StoreNowUnixMs: 5000, UptimeMs: 1500}, f.ask("DescribeServer", r)
}

func TestGetTranslatesTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := start(t, &fakeServer{}, Config{}).Get(t.Context(), "", "a")
		if err != nil {
			t.Fatal(err)
		}
		if s.ID != "a" || s.State.String() != "dead" || s.DeadReason.String() != "max_retries" || s.Due.Unix() != 7 ||
			s.Attributes["k"] != "v" || !s.FinishedAt.IsZero() {
			t.Errorf("got %+v", s)
		}
	})
}

func TestRescheduleSaysWhenEitherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		for want, when := range map[string]When{
			`id:"a"delay:{}`:                    {},
			`id:"a"delay:{seconds:2}`:           {Delay: 2 * time.Second},
			`id:"a"execute_time:{seconds:1000}`: {Due: time.Unix(1000, 0)},
		} {
			r, err := c.Reschedule(t.Context(), "", "a", when)
			if err != nil || r.Topic != "found" || r.Due.Unix() != 7 {
				t.Errorf("got %v, %v", r, err)
			}
			if got := f.lastAsked(); got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
		}
	})
}

func TestListsGoThroughPagesUntilTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		var ids []string
		var last error
		for s, err := range c.List(t.Context(), "mail", StateReady) {
			if err != nil {
				last = err
				continue
			}
			ids = append(ids, s.ID)
		}
		if fmt.Sprint(ids) != "[a b c]" || !errors.Is(last, ErrInvalid) {
			t.Errorf("got %v and %v", ids, last)
		}
		for range c.List(t.Context(), "mail", StateReady) {
			break
		}
		if got := f.count("ListTasks"); got != 5 {
			t.Errorf("asked for %d pages, want 4 and, when stopped, 1", got)
		}
	})
}

func TestPolicyDistinguishesUnsetFromZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		topic, err := start(t, f, Config{}).CreateTopic(t.Context(), "mail", Policy{MaxRetries: new(0), MaxDelay: new(time.Minute)})
		if err != nil || topic.Name != "mail" || *topic.Policy.MaxDelay != time.Minute {
			t.Errorf("got %+v, %v", topic, err)
		}
		if got := f.lastAsked(); got != `name:"mail"policy:{max_retries:0max_delay_ms:60000}` {
			t.Errorf("asked %s", got)
		}
	})
}

// On the wire no ids mean all; an empty list of ids must never become that.
func TestNoIDsAreNotAllDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		if n, _, err := c.DeleteDeadLetters(t.Context(), "mail", nil); n != 0 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if n, _, err := c.RequeueDeadLetters(t.Context(), "mail", nil); n != 0 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if f.count("DeleteDeadLetters")+f.count("RequeueDeadLetters") != 0 {
			t.Error("asked the server")
		}
		if n, err := c.DeleteMatching(t.Context(), "mail", DeadLetterFilter{Reason: DeadReasonExpired, Before: time.UnixMilli(9)}); n != 3 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if got := f.lastAsked(); got != `topic:"mail"filter:{reason:DEAD_REASON_EXPIREDdead_before_unix_ms:9}` {
			t.Errorf("asked %s", got)
		}
		n, missing, err := c.RequeueDeadLetters(t.Context(), "mail", []string{"a", "b"})
		if n != 1 || fmt.Sprint(missing) != "[b]" || err != nil {
			t.Errorf("got %d, %v, %v", n, missing, err)
		}
	})
}

func TestDescriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, &fakeServer{}, Config{})
		topic, err := c.DescribeTopic(t.Context(), "mail")
		if err != nil || topic.Name != "mail" || topic.Depth != (Depth{Scheduled: 1, Dead: 2}) || topic.Durability != "synced" {
			t.Errorf("got %+v, %v", topic, err)
		}
		s, err := c.Server(t.Context())
		if err != nil || s.Node != "n1" || s.StoreNow.Unix() != 5 || s.Uptime != 1500*time.Millisecond {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

func TestStatesReadAsInTheDocs(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"unknown": StateUnknown, "scheduled": StateScheduled, "expired": StateExpired,
		"": DeadReasonNone, "hold_expired": DeadReasonHoldExpired, "quadratic": BackoffQuadratic,
	} {
		if got.String() != want {
			t.Errorf("%#v reads %q, want %q", got, got.String(), want)
		}
	}
}
