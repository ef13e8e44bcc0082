package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func (f *fakeServer) UpdateTask(_ context.Context, r *ddqv1.UpdateTaskRequest) (*ddqv1.UpdateTaskResponse, error) {
	return &ddqv1.UpdateTaskResponse{Topic: "found", ExecuteTime: timestamppb.New(time.Unix(7, 0)), Version: 4}, f.ask("UpdateTask", r)
}

func (f *fakeServer) PromoteTask(_ context.Context, r *ddqv1.PromoteTaskRequest) (*ddqv1.PromoteTaskResponse, error) {
	return &ddqv1.PromoteTaskResponse{Topic: "found", ExecuteTime: timestamppb.New(time.Unix(7, 0)), Version: 4}, f.ask("PromoteTask", r)
}

func TestUpdateNamesWhatItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		c := start(t, f, Config{})
		for want, change := range map[string]Change{
			`id:"a"update_mask:{}`:                                                                                      {},
			`id:"a"update_mask:{paths:"payload"}`:                                                                       {Payload: []byte{}},
			`id:"a"update_mask:{paths:"payload"}if_version:3payload:"x"`:                                                {IfVersion: 3, Payload: []byte("x")},
			`id:"a"update_mask:{paths:"attributes"}`:                                                                    {Attributes: map[string]string{}},
			`id:"a"update_mask:{paths:"attributes"}attributes:{key:"k"value:"v"}`:                                       {Attributes: map[string]string{"k": "v"}},
			`id:"a"update_mask:{paths:"max_retries"}`:                                                                   {MaxRetries: new(-1)},
			`id:"a"update_mask:{paths:"max_retries"}max_retries:0`:                                                      {MaxRetries: new(0)},
			`id:"a"update_mask:{paths:"visibility_timeout_ms"}visibility_timeout_ms:1001`:                               {VisibilityTimeout: new(time.Second + 1)},
			`id:"a"update_mask:{paths:"handler_timeout_ms"}handler_timeout_ms:60000`:                                    {HandlerTimeout: new(time.Minute)},
			`id:"a"update_mask:{paths:"backoff"}`:                                                                       {Backoff: &Backoff{}},
			`id:"a"update_mask:{paths:"backoff"}backoff:{kind:BACKOFF_KIND_FIXEDbase_ms:5}`:                             {Backoff: &Backoff{Kind: BackoffFixed, Base: 5 * time.Millisecond}},
			`id:"a"update_mask:{paths:"expire_time"}`:                                                                   {Expires: new(time.Time{})},
			`id:"a"update_mask:{paths:"expire_time"}expire_time:{seconds:1000}`:                                         {Expires: new(time.Unix(1000, 0))},
			`id:"a"update_mask:{paths:"expire_after"paths:"delay"}expire_after:{seconds:2}delay:{}`:                     {ExpireAfter: 2 * time.Second, When: &When{}},
			`id:"a"update_mask:{paths:"execute_time"}execute_time:{seconds:1000}`:                                       {When: &When{Due: time.Unix(1000, 0)}},
			`id:"a"update_mask:{paths:"priority"paths:"fairness_key"paths:"fairness_weight"}priority:9fairness_key:"k"`: {Priority: new(9), FairnessKey: new("k"), FairnessWeight: new(0)},
		} {
			r, err := c.UpdateTask(t.Context(), "", "a", change)
			if err != nil || r.Topic != "found" || r.Due.Unix() != 7 || r.Version != 4 {
				t.Errorf("got %v, %v", r, err)
			}
			if got := f.lastAsked(); got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
		}
		if _, err := c.UpdateTask(t.Context(), "", "a", Change{Expires: &time.Time{}, ExpireAfter: 1}); !errors.Is(err, ErrInvalid) {
			t.Errorf("two expiries: %v", err)
		}
		if r, err := c.PromoteTask(t.Context(), "mail", "a", 3); err != nil || r.Version != 4 || f.lastAsked() != `topic:"mail"id:"a"if_version:3` {
			t.Errorf("promote: %v, %v, asked %s", r, err, f.lastAsked())
		}
	})
}

func TestStaleVersionIsTold(t *testing.T) {
	st, err := status.New(codes.Aborted, "changed").WithDetails(&errdetails.ErrorInfo{Reason: "VERSION_MISMATCH", Metadata: map[string]string{"version": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if err := plain(fromRPC(st.Err())); !errors.Is(err, ErrVersion) || !errors.As(err, &e) || e.Version != 5 {
		t.Errorf("got %v", err)
	}
}
