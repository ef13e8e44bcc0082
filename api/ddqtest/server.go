package ddqtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/memstore"
)

// running is a server that stands alone, and a connection to it. Its goroutines, and those of what it is
// made of, have ended when stop returns.
type running struct {
	store   *memstore.Store
	cases   *service.Service
	server  *server.Server
	conn    *grpc.ClientConn
	serving sync.WaitGroup
	served  error
}

// pipe is how many bytes are under way between client and server.
const pipe = 1 << 20

// start starts a server on an empty store.
func start(ctx context.Context) (*running, error) {
	quiet := slog.New(slog.DiscardHandler)
	r := &running{store: memstore.New()}
	node := actors.New(actors.Config{}, r.store, quiet, nil)
	care := upkeep.New(node) // it ends with the node
	r.cases = service.New(node, care.IndexNow)
	if err := node.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	care.Start()
	r.server = server.New(server.Config{}, r.cases, quiet, nil)
	lis := bufconn.Listen(pipe)
	r.serving.Go(func() { r.served = r.server.Serve(lis) })
	var err error
	r.conn, err = grpc.NewClient("passthrough:///ddqtest",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		return nil, errors.Join(err, r.stop(ctx))
	}
	return r, nil
}

// stop ends everything.
func (r *running) stop(ctx context.Context) error {
	var err error
	if r.conn != nil {
		err = r.conn.Close()
	}
	err = errors.Join(err, r.server.Stop(ctx))
	r.serving.Wait()
	err = errors.Join(err, r.served, r.cases.Node().Stop(ctx), r.store.Close())
	time.Sleep(forgets)
	return err
}

// forgets is after what time the actor library forgets its dead letters, and a goroutine with them.
const forgets = 5 * time.Second

// work starts a worker for each topic. stop waits for them.
func (r *running) work(ctx context.Context, topics []string, steps worker.Steps) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(topics))
	for _, topic := range topics {
		w := worker.New(r.conn, worker.Config{Topic: topic, Logger: slog.New(slog.DiscardHandler)}, steps)
		go func() { ended <- w.Run(ctx) }()
	}
	return func() error {
		cancel()
		var err error
		for range topics {
			err = errors.Join(err, <-ended)
		}
		return err
	}
}
