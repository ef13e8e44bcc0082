package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/pebblestore"
)

// dialGRPC serves gRPC on a port and returns a client of it.
func dialGRPC(b *testing.B, s *server.Server) ddqv1.DelayQueueServiceClient {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	go func() { _ = s.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.Proto)))
	must(b, err)
	b.Cleanup(func() { conn.Close() })
	return ddqv1.NewDelayQueueServiceClient(conn)
}

// cpu is what the process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// parallel runs call in 64 goroutines and reports what it costs, client and server together.
func parallel(b *testing.B, call func() error) {
	b.Helper()
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	began := cpu(b)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := call(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(cpu(b)-began)/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

// post enqueues a task in JSON, 64 at a time.
func post(b *testing.B, url string) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.ReportAllocs()
	parallel(b, func() error {
		answer, err := client.Post(url+"/v1/topics/t/tasks", "application/json", strings.NewReader(`{"payload":"aGVsbG8=","delay":"3600s"}`))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	})
}

// echo reads an enqueue and writes an answer to it as the API does, and nothing else.
func echo(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = read.Unmarshal(text, new(ddqv1.EnqueueRequest))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err = write.Marshal(&ddqv1.EnqueueResponse{
		Id: "0192f0c1-2c00-7000-8000-000000000000", Topic: "t", ExecuteTime: timestamppb.Now(), State: ddqv1.TaskState_TASK_STATE_SCHEDULED,
	})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(text)
}

// What an enqueue in JSON costs, beside the same by a unary call of gRPC, and what HTTP and JSON
// cost of it: the least that any server with these libraries takes.
func BenchmarkEnqueue(b *testing.B) {
	b.Run("rest", func(b *testing.B) {
		_, _, url := serve(b, memstore.New(), Config{}, nil)
		post(b, url)
	})
	b.Run("bare", func(b *testing.B) {
		web := httptest.NewServer(http.HandlerFunc(echo))
		defer web.Close()
		post(b, web.URL)
	})
	b.Run("grpc", func(b *testing.B) {
		s, _, _ := serve(b, memstore.New(), Config{}, nil)
		client := dialGRPC(b, s)
		parallel(b, func() error {
			_, err := client.Enqueue(b.Context(), &ddqv1.EnqueueRequest{
				Topic: "t", Payload: []byte("hello"), When: delay(time.Hour),
			})
			return err
		})
	})
}

// How many tasks an import stores: one request of b.N lines.
func BenchmarkImport(b *testing.B) {
	for name, open := range map[string]func() (store.Store, error){
		"memory": func() (store.Store, error) { return memstore.New(), nil },
		"embedded": func() (store.Store, error) {
			return pebblestore.Open(pebblestore.Config{Dir: b.TempDir()}, slog.New(slog.DiscardHandler))
		},
	} {
		b.Run(name, func(b *testing.B) {
			st, err := open()
			must(b, err)
			_, _, url := serve(b, st, Config{}, nil)
			from, to := io.Pipe()
			go func() {
				out := bufio.NewWriterSize(to, 64<<10)
				for i := range b.N {
					fmt.Fprintf(out, "{\"id\":\"%d\",\"payload\":\"aGVsbG8=\",\"delay\":\"3600s\"}\n", i)
				}
				_ = to.CloseWithError(out.Flush())
			}()
			began := cpu(b)
			b.ResetTimer()
			answer, err := http.Post(url+"/v1/topics/t/tasks:import", linesType, from)
			must(b, err)
			defer answer.Body.Close()
			last := ""
			for rows := bufio.NewScanner(answer.Body); rows.Scan(); {
				last = rows.Text()
			}
			if want := fmt.Sprintf(`{"done":true,"stored":%d,"failed":0}`, b.N); last != want {
				b.Fatalf("the last line is %s", last)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
			b.ReportMetric(float64(cpu(b)-began)/1e3/float64(b.N), "cpu-µs/op")
		})
	}
}

// What a poll that waits takes of the server's memory. The clients are bare connections.
func BenchmarkIdlePolls(b *testing.B) {
	const polls = 5000
	s, _, url := serve(b, memstore.New(), Config{}, nil)
	address := strings.TrimPrefix(url, "http://")
	for range b.N {
		before := inUse()
		conns := make([]net.Conn, polls)
		for i := range conns {
			conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
			must(b, err)
			_, err = io.WriteString(conn, "POST /v1/topics/t:take?wait=60s HTTP/1.1\r\nHost: localhost\r\n\r\n")
			must(b, err)
			conns[i] = conn
		}
		awaitPolls(b, s, polls)
		b.ReportMetric(float64(inUse()-before)/polls, "B/poll")
		for _, conn := range conns {
			conn.Close()
		}
		awaitPolls(b, s, 0)
	}
}

func delay(d time.Duration) *ddqv1.EnqueueRequest_Delay {
	return &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(d)}
}

// inUse is the memory that live objects and stacks take.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// How late tasks reach 32 clients that poll for one at a time, at 1,000 a second.
func BenchmarkTakeLateness(b *testing.B) {
	b.Run("rest", func(b *testing.B) {
		s, _, url := serve(b, memstore.New(), Config{}, nil)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		lateness(b, s, func(ctx context.Context) (due time.Time, err error) {
			asked, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/topics/t:take?wait=10s", nil)
			if err != nil {
				return due, err
			}
			answer, err := client.Do(asked)
			if err != nil {
				return due, err
			}
			defer answer.Body.Close()
			_, _ = io.Copy(io.Discard, answer.Body)
			return time.Parse(time.RFC3339Nano, answer.Header.Get("Ddq-Execute-Time"))
		})
	})
	b.Run("grpc", func(b *testing.B) {
		s, _, _ := serve(b, memstore.New(), Config{}, nil)
		client := dialGRPC(b, s)
		lateness(b, s, func(ctx context.Context) (due time.Time, err error) {
			held, err := client.Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "t", WaitMs: 10_000})
			if err != nil || len(held.Deliveries) == 0 {
				return due, err
			}
			return held.Deliveries[0].Task.ExecuteTime.AsTime(), nil
		})
	})
}

// awaitPolls waits until topic t has n polls. Only the topic's answer tells.
func awaitPolls(b *testing.B, s *server.Server, n int) {
	b.Helper()
	admin := ddqv1.NewAdminServiceClient(s.Channel())
	for {
		topic, err := admin.DescribeTopic(b.Context(), &ddqv1.DescribeTopicRequest{Name: "t"})
		if status.Code(err) != codes.NotFound { // the first poll makes it
			must(b, err)
			if int(topic.GetSubscriptions()) == n {
				return
			}
		}
	}
}

func lateness(b *testing.B, s *server.Server, take func(context.Context) (time.Time, error)) {
	b.Helper()
	producer := ddqv1.NewDelayQueueServiceClient(s.Channel())
	ctx, cancel := context.WithCancel(b.Context())
	var pollers sync.WaitGroup
	late := make([]time.Duration, b.N)
	var taken atomic.Int64
	all := make(chan struct{})
	for range 32 {
		pollers.Go(func() {
			for ctx.Err() == nil {
				due, err := take(ctx)
				if err != nil || due.IsZero() {
					continue
				}
				if i := taken.Add(1); i <= int64(b.N) {
					late[i-1] = time.Since(due)
					if i == int64(b.N) {
						close(all)
					}
				}
			}
		})
	}
	awaitPolls(b, s, 32)
	b.ResetTimer()
	for range b.N {
		_, err := producer.Enqueue(b.Context(), &ddqv1.EnqueueRequest{Topic: "t", When: delay(200 * time.Millisecond)})
		must(b, err)
		time.Sleep(time.Until(time.Now().Truncate(time.Millisecond).Add(time.Millisecond)))
	}
	<-all
	b.StopTimer()
	cancel()
	pollers.Wait()
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(late[len(late)*99/100])/1e6, "p99-ms")
}
