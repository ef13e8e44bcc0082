package worker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// However long the server was away: its workers are back within a second.
func TestWorkerIsBackWithinASecondOfItsServer(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 3 * time.Second, 8 * time.Second, time.Minute} {
		for range 10 { // the pauses are random
			synctest.Test(t, func(t *testing.T) {
				if took := backAfter(t, away); took > time.Second {
					t.Errorf("away for %v: back after another %v", away, took)
				}
			})
		}
	}
}

// backAfter runs a worker without a server for a while, and returns how long after its
// start the worker is connected.
func backAfter(t *testing.T, away time.Duration) time.Duration {
	f := &fakeServer{t: t, node: "n1", streams: make(chan *fakeStream, 1)}
	lis := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
	ddqv1.RegisterDelayQueueServiceServer(server, f)
	var up atomic.Bool
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		if !up.Load() {
			return nil, errors.New("connection refused")
		}
		return lis.DialContext(ctx)
	})
	c, err := client.Dial("passthrough:///fake", client.Config{DialOptions: []grpc.DialOption{dial}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var parties sync.WaitGroup
	parties.Go(func() { _ = server.Serve(lis) })
	parties.Go(func() {
		_ = New(c.Conn(), Config{Topic: "mail", Logger: slog.New(slog.DiscardHandler)}, HandlerFunc(ok)).Run(ctx)
	})
	defer parties.Wait()
	defer server.Stop()
	defer c.Close()
	defer stop()

	time.Sleep(away)
	up.Store(true)
	began := time.Now()
	<-f.streams
	return time.Since(began)
}
