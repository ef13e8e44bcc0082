package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// bound is how large something of a request may be. make returns a request with one of n bytes (or of
// n items), where it goes over REST, and what of it is the body there.
type bound struct {
	what   string
	most   int
	make   func(n int) (request proto.Message, path string, body proto.Message)
	call   string
	within string // reason of the answer up to the bound; empty: it is done
	over   string // and beyond it
}

// enqueuing has an EnqueueRequest with something of n bytes.
func enqueuing(edit func(e *ddqv1.EnqueueRequest, n int)) func(int) (proto.Message, string, proto.Message) {
	return func(n int) (proto.Message, string, proto.Message) {
		e := &ddqv1.EnqueueRequest{Topic: "t"}
		edit(e, n)
		return e, "/v1/topics/" + e.Topic + "/tasks", e
	}
}

func batching(tasks func(n int) []*ddqv1.EnqueueRequest) func(int) (proto.Message, string, proto.Message) {
	return func(n int) (proto.Message, string, proto.Message) {
		b := &ddqv1.EnqueueBatchRequest{Tasks: tasks(n)}
		return b, "/v1/tasks:batch", b
	}
}

func text(n int) string { return strings.Repeat("x", n) }

const (
	enqueueCall    = ddqv1.DelayQueueService_Enqueue_FullMethodName
	batchCall      = ddqv1.DelayQueueService_EnqueueBatch_FullMethodName
	ackCall        = ddqv1.DelayQueueService_Ack_FullMethodName
	checkpointCall = ddqv1.DelayQueueService_Checkpoint_FullMethodName
	retrieveCall   = ddqv1.DelayQueueService_Retrieve_FullMethodName
	signalCall     = ddqv1.WorkflowService_SignalWorkflow_FullMethodName
)

// aToken is that of no hold.
var aToken = bytes.Repeat([]byte{1}, 16)

func acking(n int) (proto.Message, string, proto.Message) {
	a := &ddqv1.Ack{TaskId: "none", HoldToken: aToken, Result: make([]byte, n)}
	return &ddqv1.AckRequest{Topic: "t", Ack: a}, "/v1/topics/t/tasks/none:ack", a
}

func noting(name, value func(n int) int) func(int) (proto.Message, string, proto.Message) {
	return func(n int) (proto.Message, string, proto.Message) {
		c := &ddqv1.Checkpoint{TaskId: "none", HoldToken: aToken, Name: text(name(n)), Value: make([]byte, value(n))}
		return &ddqv1.CheckpointRequest{Topic: "t", Checkpoint: c}, "/v1/topics/t/tasks/none:checkpoint", c
	}
}

func signalling(edit func(s *ddqv1.SignalWorkflowRequest, n int)) func(int) (proto.Message, string, proto.Message) {
	return func(n int) (proto.Message, string, proto.Message) {
		s := &ddqv1.SignalWorkflowRequest{Topic: "t", Id: "none", Signal: "go"}
		edit(s, n)
		return s, "/v1/topics/t/workflows/none:signal", s
	}
}

func one(int) int    { return 1 }
func same(n int) int { return n }

var bounds = []bound{
	{"topic", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.Topic = text(n) }), enqueueCall, "", "NAME_TOO_LONG"},
	{"id", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.Id = text(n) }), enqueueCall, "", "NAME_TOO_LONG"},
	{"payload", 1 << 20, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.Payload = make([]byte, n) }), enqueueCall, "", "PAYLOAD_TOO_LARGE"},
	{"attributes", 32, enqueuing(func(e *ddqv1.EnqueueRequest, n int) {
		for i := range n {
			e.Attributes = append(e.Attributes, &ddqv1.Attribute{Key: fmt.Sprint(i)})
		}
	}), enqueueCall, "", "BAD_ATTRIBUTES"},
	{"key of an attribute", 64, enqueuing(func(e *ddqv1.EnqueueRequest, n int) {
		e.Attributes = []*ddqv1.Attribute{{Key: text(n), Value: "v"}}
	}), enqueueCall, "", "BAD_ATTRIBUTES"},
	{"value of an attribute", 1024, enqueuing(func(e *ddqv1.EnqueueRequest, n int) {
		e.Attributes = []*ddqv1.Attribute{{Key: "k", Value: text(n)}}
	}), enqueueCall, "", "BAD_ATTRIBUTES"},
	{"fairness key", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.FairnessKey = text(n) }), enqueueCall, "", "NAME_TOO_LONG"},
	{"rate key", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.RateKey = text(n) }), enqueueCall, "", "NAME_TOO_LONG"},
	{"concurrency key", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.ConcurrencyKey = text(n) }), enqueueCall, "", "NAME_TOO_LONG"},
	{"ordering key", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.OrderingKey = text(n) }), enqueueCall, "", "NAME_TOO_LONG"},
	{"idempotency key", 128, enqueuing(func(e *ddqv1.EnqueueRequest, n int) {
		e.Idempotency = &ddqv1.Idempotency{Key: text(n), WindowMs: 1000, OnConflict: ddqv1.OnConflict_ON_CONFLICT_REJECT}
	}), enqueueCall, "", "BAD_KEY"},
	{"fingerprint", 32, enqueuing(func(e *ddqv1.EnqueueRequest, n int) { e.PayloadFingerprint = make([]byte, n) }), enqueueCall, "", "BAD_FINGERPRINT"},
	{"tasks of a batch", 1000, batching(func(n int) (all []*ddqv1.EnqueueRequest) {
		for range n {
			all = append(all, &ddqv1.EnqueueRequest{Topic: "t"})
		}
		return all
	}), batchCall, "", "BATCH_SIZE"},
	{"payloads of a batch", 4 << 20, batching(func(n int) (all []*ddqv1.EnqueueRequest) {
		for ; n > 0; n -= min(n, 1<<20) {
			all = append(all, &ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, min(n, 1<<20))})
		}
		return all
	}), batchCall, "", "BATCH_SIZE"},
	{"result", 256 << 10, acking, ackCall, "BAD_TOKEN", "RESULT_TOO_LARGE"},
	{"name in a journal", 128, noting(same, one), checkpointCall, "BAD_TOKEN", "BAD_NAME"},
	{"value in a journal", 256 << 10, noting(one, same), checkpointCall, "BAD_TOKEN", "RESULT_TOO_LARGE"},
	{"name of a worker", 128, func(n int) (proto.Message, string, proto.Message) {
		r := &ddqv1.RetrieveRequest{Topic: "empty", Worker: text(n)}
		return r, "/v1/topics/empty:retrieve", r
	}, retrieveCall, "", "BAD_NAME"},
	{"signal", 64 << 10, signalling(func(s *ddqv1.SignalWorkflowRequest, n int) { s.Payload = make([]byte, n) }), signalCall, "NO_WORKFLOW", "SIGNAL_TOO_LARGE"},
	{"name of a signal", 64, signalling(func(s *ddqv1.SignalWorkflowRequest, n int) { s.Signal = text(n) }), signalCall, "NO_WORKFLOW", "BAD_NAME"},
	{"id of a signal", 128, signalling(func(s *ddqv1.SignalWorkflowRequest, n int) { s.SignalId = text(n) }), signalCall, "NO_WORKFLOW", "BAD_NAME"},
}

// edge is a server and both ways to it.
type edge struct {
	*testing.T
	node *Node
	conn grpc.ClientConnInterface
}

func newEdge(t *testing.T) edge {
	n, err := Start(t.Context(), configOf(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(n.GRPCAddr(), client.Config{MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	e := edge{t, n, c.Conn()}
	for _, name := range []string{"t", "empty"} {
		if _, err := c.CreateTopic(t.Context(), name, client.Policy{}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// grpc calls, and returns the reason of a refusal, or the code where there is no reason.
func (e edge) grpc(ctx context.Context, call string, request proto.Message) string {
	err := e.conn.Invoke(ctx, call, request, new(emptypb.Empty))
	if err == nil {
		return ""
	}
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.Reason
		}
	}
	return status.Code(err).String()
}

// rest posts, and returns the reason of a refusal.
func (e edge) rest(path string, body []byte) string {
	e.Helper()
	answer, err := http.Post("http://"+e.node.HTTPAddr()+path, "application/json", bytes.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		e.Fatal(err)
	}
	var p struct{ Reason string }
	if answer.StatusCode >= 300 && json.Unmarshal(text, &p) != nil {
		e.Errorf("%s: %s, %s", path, answer.Status, text)
	}
	return p.Reason
}

// TestBoundsAreExact: one byte below each bound, at it and one beyond it, over gRPC and over REST.
func TestBoundsAreExact(t *testing.T) {
	e := newEdge(t)
	for _, b := range bounds {
		for _, n := range []int{b.most - 1, b.most, b.most + 1} {
			want := b.within
			if n > b.most {
				want = b.over
			}
			request, path, body := b.make(n)
			if got := e.grpc(t.Context(), b.call, request); got != want {
				t.Errorf("%s, %d over gRPC: %q, want %q", b.what, n, got, want)
			}
			text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.rest(path, text); got != want {
				t.Errorf("%s, %d over REST: %q, want %q", b.what, n, got, want)
			}
		}
	}
}

// TestMessagesHaveABound: what is read of a request before anybody looks into it.
func TestMessagesHaveABound(t *testing.T) {
	const most = 6 << 20
	e := newEdge(t)
	framed := proto.Size(&ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, most)}) - most
	for n, want := range map[int][2]string{
		most - 1: {"PAYLOAD_TOO_LARGE", ""}, most: {"PAYLOAD_TOO_LARGE", ""}, most + 1: {codes.ResourceExhausted.String(), "BODY_TOO_LARGE"},
	} {
		request := &ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, n-framed)}
		if size := proto.Size(request); size != n {
			t.Fatalf("a message of %d bytes has %d", n, size)
		}
		if got := e.grpc(t.Context(), enqueueCall, request); got != want[0] {
			t.Errorf("a message of %d bytes: %q, want %q", n, got, want[0])
		}
		if got := e.rest("/v1/topics/t/tasks", []byte("{}"+strings.Repeat(" ", n-2))); got != want[1] {
			t.Errorf("a body of %d bytes: %q, want %q", n, got, want[1])
		}
	}
}

// TestHeadersHaveABound: the library of HTTP reads 4 KiB beyond what it is told.
func TestHeadersHaveABound(t *testing.T) {
	const most = maxHeaders + 4<<10
	e := newEdge(t)
	for n, want := range map[int]int{most - 1: http.StatusOK, most: http.StatusOK, most + 1: http.StatusRequestHeaderFieldsTooLarge} {
		conn, err := net.Dial("tcp", e.node.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		const before, after = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", "\r\n\r\n"
		if _, err := io.WriteString(conn, before+text(n-len(before)-len(after))+after); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		conn.Close()
		if err != nil || answer.StatusCode != want {
			t.Errorf("headers of %d bytes: %v, %v; want %d", n, answer, err, want)
		}
	}
}
