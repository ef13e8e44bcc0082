package node

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// rude is a connection to the gRPC port of a node that keeps to no custom.
type rude struct {
	*testing.T
	*http2.Framer
	node   *Node
	others *client.Client // of somebody else
}

func newRude(t *testing.T) rude {
	t.Helper()
	n, err := Start(t.Context(), configOf(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	others, err := client.Dial(n.GRPCAddr(), client.Config{MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", n.GRPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		others.Close()
	})
	r := rude{t, http2.NewFramer(conn, conn), n, others}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.WriteSettings(), r.WriteSettingsAck()); err != nil {
		t.Fatal(err)
	}
	return r
}

// headers begin a call.
func (r rude) headers(call string) []byte {
	var text bytes.Buffer
	enc := hpack.NewEncoder(&text)
	enc.SetMaxDynamicTableSize(0) // each stands for itself
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", call}, {":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			r.Fatal(err)
		}
	}
	return text.Bytes()
}

// othersGoOn has somebody else call until over is closed, and returns how often that was done.
func (r rude) othersGoOn(over <-chan struct{}) (calls int) {
	r.Helper()
	for {
		if _, err := r.others.Server(r.Context()); err != nil {
			r.Errorf("call %d of another client: %v", calls, err)
			return calls
		}
		calls++
		select {
		case <-over:
			return calls
		default:
		}
	}
}

func TestWhoPingsWithoutEndIsCutOff(t *testing.T) {
	r := newRude(t)
	over := make(chan struct{})
	var code http2.ErrCode
	go func() {
		defer close(over)
		for {
			frame, err := r.ReadFrame()
			if err != nil {
				return // it is closed
			}
			if away, ok := frame.(*http2.GoAwayFrame); ok {
				code = away.ErrCode
			}
		}
	}()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for r.WritePing(false, [8]byte{1}) == nil {
		}
	}()
	calls := r.othersGoOn(over)
	<-written
	if code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("it was told %v", code)
	}
	t.Logf("%d calls of another client meanwhile", calls)
	r.othersGoOn(over)
}

// TestStreamsThatAreResetLeaveNothing: who begins streams and resets them at once occupies nothing by it.
func TestStreamsThatAreResetLeaveNothing(t *testing.T) {
	r := newRude(t)
	const streams = 20_000
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			frame, err := r.ReadFrame()
			if ping, ok := frame.(*http2.PingFrame); err != nil || ok && ping.IsAck() {
				return // all before it was read, or the connection is closed
			}
		}
	}()
	written := make(chan struct{})
	go func() {
		defer close(written)
		headers := r.headers(ddqv1.DelayQueueService_Subscribe_FullMethodName)
		for id := uint32(1); id < 2*streams; id += 2 {
			if errors.Join(
				r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers, EndHeaders: true}),
				r.WriteRSTStream(id, http2.ErrCodeCancel),
			) != nil {
				return // it is closed, which is as good
			}
		}
		_ = r.WritePing(false, [8]byte{1})
	}()
	t.Logf("%d calls of another client meanwhile", r.othersGoOn(over))
	<-written
	began := false
	for left := true; left; {
		text := r.metrics()
		began = began || strings.Contains(text, `ddq_grpc_streams{method="`+ddqv1.DelayQueueService_Subscribe_FullMethodName+`"}`)
		left = began && !strings.Contains(text, `ddq_grpc_streams{method="`+ddqv1.DelayQueueService_Subscribe_FullMethodName+`"} 0`+"\n")
	}
	if !began {
		t.Error("no stream was begun")
	}
}

func (r rude) metrics() string {
	r.Helper()
	answer, err := http.Get("http://" + r.node.HTTPAddr() + "/metrics")
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}
