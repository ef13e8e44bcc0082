package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The harness and its worker process talk in JSON lines: orders on the
// worker's stdin, events on its stdout.

// Orders.
const (
	orderExpect = "expect" // record a run from scratch
	orderWork   = "work"   // take deliveries
	orderPause  = "pause"  // stop taking them
	orderMark   = "mark"   // note the first start of a task due after At
	orderReport = "report"
)

// Events. Every order but mark is answered by the event of its row; done and
// progress come by themselves.
const (
	eventExpecting = "expecting"
	eventWorking   = "working"
	eventPaused    = "paused"
	eventReport    = "report"
	eventProgress  = "progress" // every progressEvery while deliveries come
	eventDone      = "done"     // every task delivered, every ack accepted
	eventFailed    = "failed"   // Work ended with an error; the worker is of no more use
)

const progressEvery = 200 * time.Millisecond

type order struct {
	Order string `json:"order"`
	Run   uint32 `json:"run,omitempty"`
	Tasks int    `json:"tasks,omitempty"`
	At    int64  `json:"at,omitempty"` // Unix nanoseconds
}

type event struct {
	Event  string  `json:"event"`
	Run    uint32  `json:"run,omitempty"`
	Seen   int     `json:"seen,omitempty"`
	Error  string  `json:"error,omitempty"`
	Report *Report `json:"report,omitempty"`
}

// worker is the worker process: it drives Work as its orders say and records
// what comes. It owns two goroutines at most, the session and the reporter of
// progress, gone when serve returns.
type worker struct {
	driver      Driver
	concurrency int
	workers     int
	inFlight    int
	hold        time.Duration // how long a handler takes

	out struct {
		sync.Mutex // guards enc
		enc        *json.Encoder
	}
	mu       sync.RWMutex // guards recorder
	recorder *Recorder

	stop context.CancelFunc // ends the session, nil when there is none
	gone chan struct{}      // closed when the session is over
}

// serveWorker carries out orders until in ends or ctx does.
func serveWorker(ctx context.Context, w *worker, in io.Reader, out io.Writer) error {
	w.out.enc = json.NewEncoder(out)
	w.recorder = NewRecorder(0, 0)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer w.pause()
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() { w.watch(ctx) })

	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("order %q: %w", lines.Text(), err)
		}
		if err := w.obey(ctx, o); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *worker) obey(ctx context.Context, o order) error {
	switch o.Order {
	case orderExpect:
		w.mu.Lock()
		w.recorder = NewRecorder(o.Run, o.Tasks)
		w.mu.Unlock()
		return w.tell(event{Event: eventExpecting, Run: o.Run})
	case orderWork:
		return w.work(ctx)
	case orderPause:
		w.pause()
		return w.tell(event{Event: eventPaused})
	case orderMark:
		w.current().Mark(time.Unix(0, o.At))
		return nil
	case orderReport:
		r, err := w.current().Report()
		if err != nil {
			return err
		}
		return w.tell(event{Event: eventReport, Report: &r})
	}
	return fmt.Errorf("unknown order %q", o.Order)
}

// work starts a session; it tells working once deliveries can come.
func (w *worker) work(ctx context.Context) error {
	if w.stop != nil {
		return errors.New("work was ordered twice")
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.gone = make(chan struct{})
	go func() {
		defer close(w.gone)
		err := w.driver.Work(ctx, Session{
			Concurrency: w.concurrency,
			Workers:     w.workers,
			InFlight:    w.inFlight,
			Ready:       func() { _ = w.tell(event{Event: eventWorking}) },
			Handle:      w.handle,
			Acked:       func(n int) { w.current().Acked(n, time.Now()) },
		})
		if err != nil {
			_ = w.tell(event{Event: eventFailed, Error: err.Error()})
		}
	}()
	return nil
}

func (w *worker) handle(ctx context.Context, d Delivery) {
	w.current().Start(d, time.Now())
	if w.hold == 0 {
		return
	}
	select {
	case <-time.After(w.hold):
	case <-ctx.Done():
	}
}

// pause ends the session and waits for it.
func (w *worker) pause() {
	if w.stop == nil {
		return
	}
	w.stop()
	<-w.gone
	w.stop = nil
}

func (w *worker) current() *Recorder {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.recorder
}

// watch tells progress and done.
func (w *worker) watch(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var told struct {
		run  uint32
		seen int
		done bool
	}
	for {
		r := w.current()
		if r.run != told.run {
			told.run, told.seen, told.done = r.run, 0, false
		}
		done := r.Done()
		if told.done || r.n == 0 {
			done = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-done:
			told.done = true
			_ = w.tell(event{Event: eventDone, Run: r.run, Seen: r.Seen()})
		case <-tick.C:
			if seen := r.Seen(); seen != told.seen {
				told.seen = seen
				_ = w.tell(event{Event: eventProgress, Run: r.run, Seen: seen})
			}
		}
	}
}

// tell fails when the harness is gone, and then so does the next read of stdin.
func (w *worker) tell(e event) error {
	w.out.Lock()
	defer w.out.Unlock()
	return w.out.enc.Encode(e)
}
