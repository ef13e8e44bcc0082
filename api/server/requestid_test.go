package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/requestid"
)

const ownRequest = "0192f0c1-0000-7000-8000-00000000000a"

// requestIn is the id in a trailer; empty for none.
func requestIn(t *testing.T, trailer metadata.MD) string {
	t.Helper()
	ids := trailer.Get(requestid.Key)
	if len(ids) == 0 {
		return ""
	}
	if len(ids) > 1 || requestid.Read(ids[0]) != ids[0] || ids[0][14] != '7' {
		t.Errorf("ids are %q", ids)
	}
	return ids[0]
}

func asRequest(ctx context.Context, id string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, requestid.Key, id)
}

func TestFailedCallsHaveARequestID(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		var trailer metadata.MD
		get := func(ctx context.Context, id string) (string, error) {
			_, err := r.queue.GetTask(ctx, &ddqv1.GetTaskRequest{Topic: "t", Id: id}, grpc.Trailer(&trailer))
			return requestIn(t, trailer), err
		}
		if id, err := get(asRequest(r.Context(), ownRequest), "a"); err != nil || id != "" {
			t.Errorf("a call that succeeds: %q, %v", id, err)
		}
		first, _ := get(r.Context(), "gone")
		second, _ := get(r.Context(), "gone")
		if first == "" || second == "" || first == second {
			t.Errorf("calls that fail: %q and %q", first, second)
		}
		if id, err := get(asRequest(r.Context(), strings.ToUpper(ownRequest)), "gone"); err == nil || id != ownRequest {
			t.Errorf("the caller's own: %q, %v", id, err)
		}
		for _, bad := range []string{"", "x", strings.Repeat("x", 36), ownRequest + "0"} {
			if id, err := get(asRequest(r.Context(), bad), "gone"); err == nil || id == "" || id == bad {
				t.Errorf("%q became %q, %v", bad, id, err)
			}
		}
		var reply []byte
		err := r.conn.Invoke(r.Context(), ddqv1.DelayQueueService_EnqueueBatch_FullMethodName, []byte{0xff}, &reply, grpc.ForceCodecV2(raw{}), grpc.Trailer(&trailer))
		if id := requestIn(t, trailer); err == nil || id == "" {
			t.Errorf("a message that cannot be read: %q, %v", id, err)
		}
		r.store.fail(errPanic)
		if id, err := get(asRequest(r.Context(), ownRequest), "a"); err == nil || id != ownRequest {
			t.Errorf("a panic: %q, %v", id, err)
		}
	})
}

func TestFailedStreamsHaveARequestID(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, method := range []string{
			ddqv1.DelayQueueService_WatchTasks_FullMethodName, ddqv1.DelayQueueService_Subscribe_FullMethodName, ddqv1.DelayQueueService_EnqueueStream_FullMethodName,
		} {
			for given, want := range map[string]string{"": "", ownRequest: ownRequest} {
				stream, err := r.conn.NewStream(asRequest(r.Context(), given), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(raw{}))
				must(r, err)
				must(r, stream.SendMsg([]byte{0xff}))
				must(r, stream.CloseSend())
				err = stream.RecvMsg(new([]byte))
				if id := requestIn(t, stream.Trailer()); err == nil || id == "" || want != "" && id != want {
					t.Errorf("%s with %q: %q, %v", method, given, id, err)
				}
			}
		}
		stream := r.pipeline()
		must(r, stream.Send(frameOf(1, 1)))
		must(r, stream.CloseSend())
		for err := error(nil); err == nil; {
			_, err = stream.Recv()
		}
		if id := requestIn(t, stream.Trailer()); id != "" {
			t.Errorf("a stream that succeeds: %q", id)
		}
	})
}

// The id of a call that failed is the same in the trailer, the log and the audit log; within an HTTP request
// it is that of the request.
func TestRequestIDsAreOnesInAllLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit")
		written, err := audit.Open(path, "node", quiet)
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		var said bytes.Buffer
		r := newRigLogging(t, slog.New(slog.NewTextHandler(&said, nil)), insecure.NewCredentials(), Config{Audit: written}, actors.Config{})
		defer r.close()
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"}) // the topic exists
		for what, call := range map[string]func(name string) (id string, err error){
			"port": func(name string) (string, error) {
				var trailer metadata.MD
				_, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: name, Delivery: true}, grpc.Trailer(&trailer))
				return requestIn(t, trailer), err
			},
			"port, with an id": func(name string) (string, error) {
				_, err := r.admin.PauseTopic(asRequest(r.Context(), ownRequest), &ddqv1.PauseTopicRequest{Name: name, Delivery: true})
				return ownRequest, err
			},
			"HTTP": func(name string) (string, error) {
				const request = "0192f0c1-0000-7000-8000-00000000000b"
				ctx := auth.WithOrigin(asRequest(r.Context(), ownRequest), auth.Origin{Request: request})
				_, err := ddqv1.NewAdminServiceClient(r.server.Channel()).PauseTopic(ctx, &ddqv1.PauseTopicRequest{Name: name, Delivery: true})
				return request, err
			},
		} {
			before := len(auditRecords(t, path))
			id, err := call("nobody")
			all := auditRecords(t, path)[before:]
			if err == nil || id == "" || len(all) != 2 || all[1].Code != "NO_TOPIC" || all[1].RequestID != id {
				t.Errorf("%s: %q, %v, written down %+v", what, id, err, all)
			}
			if all[0].RequestID != "" && all[0].RequestID != id {
				t.Errorf("%s: %q, asked under %q", what, id, all[0].RequestID)
			}
			for fault, line := range map[error]string{errors.New("disk on fire"): "call failed", errPanic: "handler panicked"} {
				said.Reset()
				r.store.fail(fault)
				id, err := call("t")
				r.store.heal()
				got := regexp.MustCompile(`msg="` + line + `".* request=(\S+)`).FindStringSubmatch(said.String())
				if err == nil || len(got) == 0 || got[1] != id {
					t.Errorf("%s: %q, %v, logged %s", what, id, err, &said)
				}
			}
		}
	})
}

func TestRefusalsAreWrittenDownUnderTheirRequestID(t *testing.T) {
	auditedBubble(t, func(r *guardedRig, _ *audit.Log, path string) {
		viewer, _ := r.token(0, "viewer:mail")
		var trailer metadata.MD
		before := len(auditRecords(t, path))
		_, err := r.admin.DeleteTopic(r.as(viewer), &ddqv1.DeleteTopicRequest{Name: "mail"}, grpc.Trailer(&trailer))
		all := auditRecords(t, path)[before:]
		if id := requestIn(t, trailer); err == nil || id == "" || len(all) != 1 || all[0].Event != audit.Refused || all[0].RequestID != id {
			t.Errorf("%q, %v, written down %+v", id, err, all)
		}
	})
}
