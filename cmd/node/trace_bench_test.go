package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// BenchmarkTraceContext is what a trace context that is not recorded adds to a task, with client,
// server and worker in this process: rounds of tasks without and with a context in turns, in batches,
// and what is in the middle of their pairs. An operation is a pair; some hundreds tell half a percent.
func BenchmarkTraceContext(b *testing.B) {
	for _, c := range []struct {
		name, store, endpoint string
		delay                 time.Duration // of tasks; those due at once are delivered without a read
	}{
		{"embedded", Embedded, "", 0},
		{"embedded-collector", Embedded, "http://127.0.0.1:1", 0},
		{"embedded-later", Embedded, "", 300 * time.Millisecond},
		{"redis", "redis", "", 0},
		{"redis-later", "redis", "", 300 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := &Config{Store: c.store, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, ShutdownGrace: 10 * time.Second, Data: filepath.Join(b.TempDir(), "data")}
			if c.store == "redis" {
				cfg.Store = redistest.Start(b).URL()
			}
			cfg.Tracing.Endpoint, cfg.Tracing.MaxPerSecond = c.endpoint, 200
			n := started(b, cfg)
			defer stop(b, n)
			l := startLoad(b, n.GRPCAddr(), c.delay)
			defer l.stop()
			l.compare(b)
		})
	}
}

// load enqueues tasks, and works on them.
type load struct {
	client   *client.Client
	delay    time.Duration
	contexts []string
	traced   atomic.Bool // tasks have a context
	next     atomic.Int64
	acked    chan int
	stop     func()
}

const (
	roundTasks = 4 << 10
	loadBatch  = 512
)

func startLoad(b *testing.B, addr string, delay time.Duration) *load {
	b.Helper()
	l := &load{delay: delay, contexts: make([]string, 4096), acked: make(chan int, roundTasks)}
	for i := range l.contexts {
		l.contexts[i] = fmt.Sprintf("00-%016x%016x-%016x-00", rand.Uint64()|1, rand.Uint64(), rand.Uint64()|1)
	}
	var err error
	if l.client, err = client.Dial(addr, client.Config{Timeout: 10 * time.Minute, Trace: l.context}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	w := worker.New(l.client.Conn(), worker.Config{Topic: "t", Concurrency: 64, MaxInFlight: 10_000, Observe: func(e worker.Event) {
		if e.Kind == worker.Acked {
			l.acked <- e.Tasks
		}
	}}, worker.HandlerFunc(func(context.Context, worker.Task) error { return nil }))
	var working sync.WaitGroup
	working.Go(func() {
		if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
	l.stop = func() { cancel(); working.Wait(); l.client.Close() }
	return l
}

func (l *load) context(context.Context) (traceparent, tracestate string) {
	if !l.traced.Load() {
		return "", ""
	}
	return l.contexts[l.next.Add(1)%int64(len(l.contexts))], ""
}

// compare runs pairs of rounds, and reports what a task takes without a context, and how much more
// with one.
func (l *load) compare(b *testing.B) {
	l.round(b, false)
	l.round(b, true)
	var plain, more [3][]float64 // processor, allocations, bytes of them
	for i := 0; b.Loop(); i++ {
		first := i%2 == 1 // in turns
		one := l.round(b, first)
		other := l.round(b, !first)
		if first {
			one, other = other, one
		}
		for k := range one {
			plain[k], more[k] = append(plain[k], one[k]), append(more[k], other[k]-one[k])
		}
	}
	for k, unit := range []string{"cpu-ns", "allocs", "B"} {
		b.ReportMetric(middle(plain[k]), "plain-"+unit+"/task")
		b.ReportMetric(middle(more[k]), "more-"+unit+"/task")
	}
	b.ReportMetric(100*middle(more[0])/middle(plain[0]), "more-cpu-%")
}

// round has tasks done, and returns what one took.
func (l *load) round(b *testing.B, traced bool) [3]float64 {
	b.Helper()
	l.traced.Store(traced)
	tasks := make([]client.Task, loadBatch)
	for i := range tasks {
		tasks[i] = client.Task{Topic: "t", Payload: make([]byte, 200), Delay: l.delay}
	}
	runtime.GC()
	before := spent()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range roundTasks / loadBatch / 4 {
				if _, err := l.client.EnqueueBatch(b.Context(), tasks); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	for left := roundTasks; left > 0 && !b.Failed(); {
		left -= <-l.acked
	}
	used := spent()
	for k := range used {
		used[k] = (used[k] - before[k]) / roundTasks
	}
	return used
}

// spent is what this process has used so far: processor in ns, allocations, and bytes of them.
func spent() (all [3]float64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return all
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return [3]float64{float64(u.Utime.Nano() + u.Stime.Nano()), float64(m.Mallocs), float64(m.TotalAlloc)}
}

// middle is the mean of the half around the median.
func middle(of []float64) float64 {
	slices.Sort(of)
	half := of[len(of)/4 : max(len(of)*3/4, len(of)/4+1)]
	sum := 0.0
	for _, v := range half {
		sum += v
	}
	return sum / float64(len(half))
}
