package node

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// rawCodec sends bytes as they are, and gives back what was answered.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// victim is a node that anything is sent to.
type victim struct {
	*testing.F
	node *Node
	log  *logged
	conn grpc.ClientConnInterface
}

func newVictim(f *testing.F) victim {
	log := new(logged)
	cfg := &Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", ShutdownGrace: time.Second}
	n, err := Start(context.Background(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		f.Fatal(err)
	}
	c, err := client.Dial(n.GRPCAddr(), client.Config{MaxElapsed: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		c.Close()
		if err := n.Stop(); err != nil {
			f.Error(err)
		}
	})
	return victim{f, n, log, c.Conn()}
}

// check fails unless the node serves on, and nothing panicked.
func (v victim) check(t *testing.T) {
	t.Helper()
	answer, err := http.Get("http://" + v.node.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	calm := bytes.Contains(text, []byte("ddq_grpc_panics_total 0\n")) && bytes.Contains(text, []byte("ddq_http_panics_total 0\n"))
	if err != nil || v.node.Ready() != nil || !calm || strings.Contains(v.log.String(), "panicked") {
		t.Fatalf("%v, ready: %v\n%s", err, v.node.Ready(), v.log)
	}
}

// FuzzFrames has frames of the streams of workers and producers: a first one and one behind a good one.
func FuzzFrames(f *testing.F) {
	v := newVictim(f)
	hello, _ := proto.Marshal(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", MaxInFlight: 1}, Credit: new(int32(1))})
	settle, _ := proto.Marshal(&ddqv1.SubscribeRequest{Sequence: 1, Acks: []*ddqv1.Ack{{TaskId: "a", HoldToken: aToken}}, Extends: []*ddqv1.Extend{{}}, Credit: new(int32(-1))})
	tasks, _ := proto.Marshal(&ddqv1.EnqueueStreamRequest{Sequence: 1, Tasks: []*ddqv1.EnqueueRequest{{Topic: "t", Backoff: &ddqv1.Backoff{Kind: 7}}, {}}})
	for _, frame := range [][]byte{nil, {0xff}, {0x0a, 0x05, 'x'}, hello, settle, tasks, hello[:len(hello)-1], bytes.Repeat([]byte{0x12, 0}, 1000)} {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for method, first := range map[string][]byte{
			ddqv1.DelayQueueService_Subscribe_FullMethodName: hello, ddqv1.DelayQueueService_EnqueueStream_FullMethodName: tasks,
		} {
			for _, frames := range [][][]byte{{frame}, {first, frame}} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				stream, err := v.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range frames {
					_ = stream.SendMsg(b) // the stream may have ended by the one before
				}
				_ = stream.CloseSend()
				for err == nil {
					err = stream.RecvMsg(new([]byte))
				}
				if ctx.Err() != nil {
					t.Errorf("%s does not end: %v", method, err)
				}
				cancel()
			}
		}
		v.check(t)
	})
}

// FuzzBodies has bodies of the REST API.
func FuzzBodies(f *testing.F) {
	v := newVictim(f)
	for _, text := range []string{
		"", "null", "{", "[]", `""`, "{}", `{"topic":"t"}`, `{"payload":"AA=="}`, `{"payload":"!"}`, `{"delay":"-1s"}`, `{"delay":"1e9s"}`, "\xff\xfe", `{"a":` + strings.Repeat("[", 100),
		`{"tasks":[{"topic":"t"},{}]}`, `{"id":"\ud800"}`, `{"name":"t","policy":{"shards":-1}}`, `{"acks":[{}],"nacks":[null]}`, `{"steps":[{"name":"a","after":["a"]}]}`,
		`{"schedule":{"cron":"* * * * *"}}`, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n", `{"filter":{"state":99}}`, `{"max_retries":1e309}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for path, method := range map[string]string{
			"/v1/topics/t/tasks": "POST", "/v1/tasks:batch": "POST", "/v1/topics": "POST", "/v1/topics/t": "PATCH", "/v1/topics/t:settle": "POST", "/v1/topics/t/tasks/a": "PATCH",
			"/v1/topics/t/tasks:search": "POST", "/v1/topics/t/tasks:raw": "POST", "/v1/topics/t/tasks:import": "POST", "/v1/topics/t/workflows": "POST", "/v1/schedules:preview": "POST",
			"/v1/topics/t/schedules/s": "PUT", "/v1/audiences": "POST", "/v1/audiences/a/recipients:put": "POST", "/v1/topics/t/dead:requeue": "POST",
		} {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://"+v.node.HTTPAddr()+path, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			if strings.HasSuffix(path, ":import") {
				request.Header.Set("Content-Type", "application/x-ndjson")
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode == http.StatusInternalServerError {
				t.Errorf("%s %s: %s %s", method, path, answer.Status, said)
			}
		}
		v.check(t)
	})
}
