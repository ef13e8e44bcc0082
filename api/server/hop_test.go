package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	hop "github.com/ddq-io/ddq/api/peer"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/store"
)

// far is a node at the other end of a hop: it has tasks, and hears notices.
type far struct {
	ddqv1.UnimplementedDelayQueueServiceServer
	ddqv1.UnimplementedPeerServiceServer
	tasks []*ddqv1.Delivery
	heard chan *ddqv1.NotifyRequest
}

func (f *far) Subscribe(s grpc.BidiStreamingServer[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]) error {
	for _, frame := range []*ddqv1.SubscribeResponse{{Subscribed: &ddqv1.Subscribed{Node: "far"}}, {Deliveries: f.tasks}} {
		if err := s.Send(frame); err != nil {
			return err
		}
	}
	<-s.Context().Done()
	return s.Context().Err()
}

func (f *far) Notify(s grpc.ClientStreamingServer[ddqv1.NotifyRequest, ddqv1.NotifyResponse]) error {
	for {
		n, err := s.Recv()
		if err != nil {
			return err
		}
		f.heard <- n
	}
}

// near is a link that keeps the tasks that it gets.
type near struct{ got chan []subscription.Delivery }

func (n *near) Await(context.Context)                 {}
func (n *near) Opened()                               {}
func (n *near) Demand(int, int)                       {}
func (n *near) Cancel([]subscription.CancelAsk)       {}
func (n *near) Closed(error)                          {}
func (n *near) Deliver(tasks []subscription.Delivery) { n.got <- tasks }

// hopTo runs a test with a way to a node.
func hopTo(t *testing.T, f *far, test func(t *testing.T, p *hop.Peers, to fleet.Member)) {
	synctest.Test(t, func(t *testing.T) {
		f.heard = make(chan *ddqv1.NotifyRequest, 10)
		lis := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
		ddqv1.RegisterDelayQueueServiceServer(server, f)
		ddqv1.RegisterPeerServiceServer(server, f)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(lis) })
		p := hop.New(hop.Config{DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		}}, slog.New(slog.DiscardHandler))
		defer func() {
			_ = p.Close()
			server.Stop()
			serving.Wait()
		}()
		test(t, p, fleet.Member{Name: "far", Addr: "passthrough:///far"})
	})
}

// TestWorkersSeeTheSameOverAHop fills everything that a task and a delivery have, and
// compares what a worker is told by the node that holds the task with what it is told
// by another one.
func TestWorkersSeeTheSameOverAHop(t *testing.T) {
	var full subscription.Delivery
	fill(t, reflect.ValueOf(&full).Elem())
	full.Task.Backoff.Kind = store.BackoffLinear // one that there is
	full.Task.Trace.State = "vendor=1"           // well formed
	full.MaxRetries = full.Task.MaxRetries
	at := time.Now()
	given := []delivery.Handed{{Delivery: full, At: at}}
	for _, edit := range []func(*store.Task){
		func(*store.Task) {},
		func(t *store.Task) { t.Traits = &store.Traits{FairnessWeight: 7} },
		func(t *store.Task) { t.Backoff = &store.Backoff{Kind: store.BackoffFixed} },
		func(t *store.Task) { t.Backoff = &store.Backoff{Kind: store.BackoffQuadratic} },
		func(t *store.Task) { t.Backoff = &store.Backoff{Kind: store.BackoffExponential} },
	} {
		bare := full
		bare.Task = &store.Task{ID: "bare", MaxRetries: full.MaxRetries, Attempt: 1, Due: 1, Created: 1}
		edit(bare.Task)
		given = append(given, delivery.Handed{Delivery: bare, At: at})
	}
	direct := delivery.Wire(given, at)
	sent := delivery.Wire(given, at)
	delivery.TellDeadlines(sent, given)
	hopTo(t, &far{tasks: sent}, func(t *testing.T, p *hop.Peers, to fleet.Member) {
		link := &near{got: make(chan []subscription.Delivery, 1)}
		p.Subscribe(to, subscription.Options{Topic: full.Topic, OnDemand: true}, link)
		tasks := <-link.got
		hopped := make([]delivery.Handed, len(tasks))
		for i, d := range tasks {
			hopped[i] = delivery.Handed{Delivery: d, At: at}
		}
		for i, got := range delivery.Wire(hopped, at) {
			if !proto.Equal(got, direct[i]) {
				t.Errorf("over a hop it is\n%v\nwant\n%v", got, direct[i])
			}
		}
		if tasks[0].Deadline != full.Deadline {
			t.Errorf("the hold ends at %d, want %d", tasks[0].Deadline, full.Deadline)
		}
	})
}

// TestNoticesAreTheSameOverAHop does that with what nodes tell each other.
func TestNoticesAreTheSameOverAHop(t *testing.T) {
	var full fleet.Notice
	fill(t, reflect.ValueOf(&full).Elem())
	other := &far{}
	hopTo(t, other, func(t *testing.T, p *hop.Peers, to fleet.Member) {
		p.Notify(to, full)
		if got := noticeOf(<-other.heard); !reflect.DeepEqual(got, full) {
			t.Errorf("over a hop it is\n%+v\nwant\n%+v", got, full)
		}
	})
}

// fill gives everything in v a value of its own. Times are whole milliseconds, as they
// are on the wire.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	n := uint64(0)
	fillFrom(t, v, &n)
}

func fillFrom(t *testing.T, v reflect.Value, n *uint64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
		if v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(*n) * int64(time.Millisecond))
		}
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(*n % 256)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFrom(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillFrom(t, v.Index(0), n)
		fillFrom(t, v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			fillFrom(t, v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[store.Shard]() && v.Type().Field(i).Name == "Life" {
				continue // of calls of the store, not of the name
			}
			fillFrom(t, v.Field(i), n)
		}
	default:
		t.Fatalf("no value for a %v", v.Type())
	}
}
