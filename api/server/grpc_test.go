package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/operations"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

var quiet = slog.New(slog.DiscardHandler)

// rig is a server over a real node and an in-memory store, and clients of it,
// over a connection in memory.
type rig struct {
	*testing.T
	store   *faulty
	service *service.Service
	server  *Server
	lis     *bufconn.Listener
	conn    *grpc.ClientConn
	queue   ddqv1.DelayQueueServiceClient
	admin   ddqv1.AdminServiceClient

	schedules ddqv1.ScheduleServiceClient
	workflows ddqv1.WorkflowServiceClient

	operations ddqv1.OperationServiceClient
	long       *operations.Operations
}

// bubble runs test on a rig in fake time. Everything has to be gone afterwards.
func bubble(t *testing.T, config Config, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, config, actors.Config{})
		defer r.close()
		test(r)
	})
}

// newRig starts a server that stands alone, unless there are members, which are its
// fleet.
func newRig(t *testing.T, config Config, system actors.Config, members ...fleet.Member) *rig {
	t.Helper()
	return newRigOver(t, insecure.NewCredentials(), config, system, members...)
}

// newRigOver is newRig with clients whose connection is secured.
func newRigOver(t *testing.T, secure credentials.TransportCredentials, config Config, system actors.Config, members ...fleet.Member) *rig {
	t.Helper()
	return newRigLogging(t, quiet, secure, config, system, members...)
}

// newRigLogging is newRigOver with a node and a server that log.
func newRigLogging(t *testing.T, log *slog.Logger, secure credentials.TransportCredentials, config Config, system actors.Config, members ...fleet.Member) *rig {
	t.Helper()
	db := memstore.New()
	r := &rig{T: t, store: &faulty{Store: db, cellStore: db}}
	node := actors.New(system, r.store, log, nil)
	if len(members) > 0 {
		node.Join(stillFleet{members: members}, idlePeers{})
		node.Membership().Update()
	}
	up := upkeep.New(node)
	r.service = service.New(node, up.IndexNow)
	if err := r.service.Node().Start(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	up.Start()
	r.long = operations.New(db, "node", node.Clock().Millis, quiet)
	config.Operations = r.long
	r.server = New(config, r.service, log, nil)
	r.lis = bufconn.Listen(1 << 20)
	go func() {
		if err := r.server.Serve(ipListener{r.lis}); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	conn := r.dial(secure)
	r.conn, r.queue, r.admin = conn, ddqv1.NewDelayQueueServiceClient(conn), ddqv1.NewAdminServiceClient(conn)
	r.schedules = ddqv1.NewScheduleServiceClient(conn)
	r.workflows = ddqv1.NewWorkflowServiceClient(conn)
	r.operations = ddqv1.NewOperationServiceClient(conn)
	return r
}

// dial is another connection to the server. The codec lets tests send what is not UTF-8.
func (r *rig) dial(secure credentials.TransportCredentials, more ...grpc.DialOption) *grpc.ClientConn {
	r.Helper()
	conn, err := grpc.NewClient("passthrough:///node", append(more,
		grpc.WithTransportCredentials(secure),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.lis.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.Proto)),
		grpc.WithDisableRetry(),
	)...)
	if err != nil {
		r.Fatalf("client: %v", err)
	}
	return conn
}

func (r *rig) close() {
	r.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.server.Stop(ctx); err != nil {
		r.Errorf("stop server: %v", err)
	}
	r.long.Stop()
	r.store.heal()
	if err := r.service.Node().Stop(ctx); err != nil {
		r.Errorf("stop system: %v", err)
	}
	if err := r.store.Close(); err != nil {
		r.Errorf("close store: %v", err)
	}
	time.Sleep(5 * time.Second) // the actor library forgets its dead letters after a while
}

// enqueue stores a task that has to be accepted.
func (r *rig) enqueue(req *ddqv1.EnqueueRequest) *ddqv1.EnqueueResponse {
	r.Helper()
	resp, err := r.queue.Enqueue(r.Context(), req)
	if err != nil {
		r.Fatalf("enqueue %s: %v", req.Id, err)
	}
	return resp
}

// hold enqueues a task that is due at once and retrieves it.
func (r *rig) hold(topic, id string) *ddqv1.Delivery {
	r.Helper()
	r.enqueue(&ddqv1.EnqueueRequest{Topic: topic, Id: id})
	return r.retrieve(topic)
}

// retrieve waits for one task.
func (r *rig) retrieve(topic string) *ddqv1.Delivery {
	r.Helper()
	resp, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: topic, WaitMs: 60_000})
	if err != nil || len(resp.Deliveries) != 1 {
		r.Fatalf("retrieve: %v, %v", resp, err)
	}
	return resp.Deliveries[0]
}

func (r *rig) ack(topic string, d *ddqv1.Delivery) (*ddqv1.AckResponse, error) {
	return r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: topic, Ack: &ddqv1.Ack{TaskId: d.Task.Id, HoldToken: d.HoldToken}})
}

func (r *rig) mustAck(topic string, d *ddqv1.Delivery) {
	r.Helper()
	if _, err := r.ack(topic, d); err != nil {
		r.Fatalf("ack: %v", err)
	}
}

// cellStore is the role under a name that no method of it has.
type cellStore interface{ store.Cells }

// faulty is a store whose writes of tasks fail when told to.
type faulty struct {
	store.Store
	cellStore
	mu    sync.Mutex
	err   error                  // guarded by mu
	block chan struct{}          // guarded by mu; not nil: calls wait until it is closed
	only  func(store.Shard) bool // whose calls; nil: all; guarded by mu
}

func (f *faulty) fail(err error) { f.mu.Lock(); f.err = err; f.mu.Unlock() }

// stop makes calls hang until the returned function is called.
func (f *faulty) stop() (resume func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.block = make(chan struct{})
	return sync.OnceFunc(func() { close(f.block) })
}

// stopOnly makes calls of some shards hang until the returned function is called.
func (f *faulty) stopOnly(which func(store.Shard) bool) (resume func()) {
	resume = f.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.only = which
	return resume
}

func (f *faulty) heal() { f.fail(nil) }

var errPanic = errors.New("panic, please")

func (f *faulty) fault(ctx context.Context, s store.Shard) error {
	f.mu.Lock()
	err, block := f.err, f.block
	if f.only != nil && !f.only(s) {
		block = nil
	}
	f.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
		}
	}
	if err == errPanic {
		panic("the store went mad at redis://secret")
	}
	return err
}

func (f *faulty) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	if err := f.fault(ctx, s); err != nil {
		return store.Stamp{}, nil, err
	}
	return f.Store.Add(ctx, s, tasks)
}

func (f *faulty) Get(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	if err := f.fault(ctx, s); err != nil {
		return store.Stamp{}, nil, err
	}
	return f.Store.Get(ctx, s, ids)
}

func (f *faulty) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	if err := f.fault(ctx, s); err != nil {
		return store.Stamp{}, nil, err
	}
	return f.Store.Ack(ctx, s, acks, retention)
}

func (f *faulty) Extend(ctx context.Context, s store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	if err := f.fault(ctx, s); err != nil {
		return store.Stamp{}, nil, err
	}
	return f.Store.Extend(ctx, s, extends)
}

func (f *faulty) Changes(ctx context.Context, reads []store.LogRead) ([]store.LogPage, error) {
	if err := f.fault(ctx, store.Shard{}); err != nil {
		return nil, err
	}
	return f.Store.Changes(ctx, reads)
}

func (f *faulty) PutTopic(ctx context.Context, t store.Topic) (store.Topic, error) {
	if err := f.fault(ctx, store.Shard{}); err != nil {
		return store.Topic{}, err
	}
	return f.Store.PutTopic(ctx, t)
}
