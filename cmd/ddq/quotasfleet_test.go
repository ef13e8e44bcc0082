//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// tenantFleet is two server processes on one Redis, and clients of each that are in a namespace with quotas.
type tenantFleet struct {
	*testing.T
	servers *servers
}

// Two processes on one Redis: a namespace has no more of anything than its quotas allow, over both.
func TestQuotasHoldForProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three seconds")
	}
	f := tenantFleet{t, startServers(t, redistest.Start(t).URL(), 2)}
	awaitActive(t, f.dial(t, 0, ""), 2)
	for name, test := range map[string]func(*testing.T, tenantFleet){
		"tasks a second": testTaskRate,
		"bytes a second": testByteRate,
		"topics":         testTopics,
		"streams":        testStreams,
		"in flight":      testInFlight,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

func (f tenantFleet) dial(t *testing.T, node int, namespace string) *client.Client {
	t.Helper()
	c, err := client.Dial(f.servers.grpc[node], client.Config{Namespace: namespace, Timeout: time.Minute, MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// bounded makes a namespace with quotas, and returns a client in it for each node, once the nodes know it.
func (f tenantFleet) bounded(t *testing.T, namespace string, quotas access.QuotaChange) (clients []*client.Client) {
	t.Helper()
	if _, err := f.dial(t, 0, "").CreateNamespace(t.Context(), namespace, quotas); err != nil {
		t.Fatal(err)
	}
	for node := range f.servers.nodes {
		c := f.dial(t, node, namespace)
		await(t, "the namespace to be known", func() bool {
			for _, err := range c.ListTopics(t.Context()) {
				return err == nil
			}
			return true
		})
		clients = append(clients, c)
	}
	return clients
}

func reasonOf(err error) string {
	if e, refused := errors.AsType[*client.Error](err); refused {
		return e.Reason
	}
	return ""
}

// flood enqueues tasks with payloads of so many bytes at all nodes at once, for two seconds, and until somebody was
// refused. It returns how many were let in, and the time from before the first until after the last.
func flood(t *testing.T, clients []*client.Client, payload int) (in int, took time.Duration) {
	t.Helper()
	var count atomic.Int64
	var refused atomic.Bool
	var all sync.WaitGroup
	began := time.Now()
	for _, c := range clients {
		for range 4 {
			all.Go(func() {
				for time.Since(began) < 2*time.Second || !refused.Load() && time.Since(began) < time.Minute {
					switch _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail", Payload: make([]byte, payload), Delay: time.Hour}); {
					case err == nil:
						count.Add(1)
					case reasonOf(err) != "RATE_LIMITED":
						t.Errorf("enqueue: %v", err)
						return
					default:
						refused.Store(true)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	return int(count.Load()), time.Since(began)
}

func testTaskRate(t *testing.T, f tenantFleet) {
	const perSecond, burst = 100, 20
	clients := f.bounded(t, "tasks", access.QuotaChange{EnqueuePerSecond: new(float64(perSecond)), EnqueueBurst: new(int64(burst))})
	in, took := flood(t, clients, 1)
	if most := burst + int(perSecond*took.Seconds()); in > most || in < burst {
		t.Errorf("%d tasks in %v, want up to %d", in, took, most)
	}
	t.Logf("%d tasks in %v", in, took)
}

func testByteRate(t *testing.T, f tenantFleet) {
	const perSecond, payload = 4000, 50
	in, took := flood(t, f.bounded(t, "bytes", access.QuotaChange{BytesPerSecond: new(int64(perSecond))}), payload)
	if most := perSecond + int(perSecond*took.Seconds()); in*payload > most || in*payload < perSecond/2 {
		t.Errorf("%d bytes in %v, want up to %d", in*payload, took, most)
	}
	t.Logf("%d bytes in %v", in*payload, took)
}

// together does something so many times at each node, all at once, and returns how often it went well.
func together(t *testing.T, clients []*client.Client, times int, do func(c *client.Client, i int) error) int {
	t.Helper()
	var in atomic.Int64
	var all sync.WaitGroup
	for n, c := range clients {
		for i := range times {
			all.Go(func() {
				switch err := do(c, n*times+i); {
				case err == nil:
					in.Add(1)
				case status.Code(err) != codes.ResourceExhausted && reasonOf(err) != "QUOTA":
					t.Errorf("%d at node %d: %v", i, n, err)
				}
			})
		}
	}
	all.Wait()
	return int(in.Load())
}

func testTopics(t *testing.T, f tenantFleet) {
	clients := f.bounded(t, "topics", access.QuotaChange{MaxTopics: new(int64(5))})
	in := together(t, clients, 10, func(c *client.Client, i int) error {
		_, err := c.CreateTopic(t.Context(), fmt.Sprint("t", i), client.Policy{})
		return err
	})
	there := 0
	for _, err := range clients[1].ListTopics(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		there++
	}
	if in != 5 || there != 5 {
		t.Errorf("%d of 20 topics were created, and %d are there; want 5", in, there)
	}
}

func testStreams(t *testing.T, f tenantFleet) {
	clients := f.bounded(t, "streams", access.QuotaChange{MaxStreams: new(int64(3))})
	if _, err := clients[0].CreateTopic(t.Context(), "mail", client.Policy{}); err != nil {
		t.Fatal(err)
	}
	subscribe := func(ctx context.Context, c *client.Client) error {
		stream, err := ddqv1.NewDelayQueueServiceClient(c.Conn()).Subscribe(ctx)
		if err != nil {
			return err
		}
		if err := stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", Worker: "w"}}); err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	ctx, end := context.WithCancel(t.Context())
	if in := together(t, clients, 6, func(c *client.Client, _ int) error { return subscribe(ctx, c) }); in != 3 {
		t.Errorf("%d of 12 streams are open, want 3", in)
	}
	end()
	await(t, "a stream in place of those that ended", func() bool { return subscribe(t.Context(), clients[1]) == nil })
}

// testInFlight has workers of two topics at both nodes, with room for more than the namespace has.
func testInFlight(t *testing.T, f tenantFleet) {
	const most, tasks = 3, 50
	clients := f.bounded(t, "flight", access.QuotaChange{MaxInFlight: new(int64(most))})
	topics := []string{"mail", "sms"}
	for _, topic := range topics {
		batch := make([]client.Task, tasks)
		for i := range batch {
			batch[i] = client.Task{Topic: topic, ID: fmt.Sprint(i)}
		}
		if _, err := clients[0].EnqueueBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	var running, highest, done atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var parties sync.WaitGroup
	for _, c := range clients {
		for _, topic := range topics {
			parties.Go(func() {
				_ = worker.New(c.Conn(), worker.Config{Topic: topic, Concurrency: 16}, worker.HandlerFunc(func(context.Context, worker.Task) error {
					now := running.Add(1)
					defer running.Add(-1)
					for was := highest.Load(); now > was && !highest.CompareAndSwap(was, now); was = highest.Load() {
					}
					time.Sleep(5 * time.Millisecond) // the work
					if done.Add(1) == int64(len(topics)*tasks) {
						stop()
					}
					return nil
				})).Run(ctx)
			})
		}
	}
	began := time.Now()
	parties.Wait()
	if highest.Load() != most || done.Load() < int64(len(topics)*tasks) {
		t.Errorf("%d tasks are done, %d at a time; want %d and %d", done.Load(), highest.Load(), len(topics)*tasks, most)
	}
	t.Logf("%d tasks in %v", done.Load(), time.Since(began))
}
