package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/ddq-io/ddq/bench/box"
)

// stallAfter is how long a run may go without a delivery before the harness
// takes the tasks that are missing for lost.
const stallAfter = 60 * time.Second

// host is the harness's side of a worker process. It owns one goroutine, which
// reads the worker's events and ends with the process.
type host struct {
	process *box.Process
	in      io.WriteCloser
	events  chan event
}

// startWorker starts a worker process for an instance; it takes no deliveries yet.
func startWorker(b *box.Box, o Options, system, target string) (*host, error) {
	args := append(append([]string(nil), o.Worker[1:]...),
		"--system", system, "--target", target, "--concurrency", strconv.Itoa(o.Concurrency), "--hold", o.Hold.String(),
		"--workers", strconv.Itoa(o.Workers), "--in-flight", strconv.Itoa(o.InFlight))
	cmd := exec.Command(o.Worker[0], args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe() // not StdoutPipe: Wait would close it under the reader
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	p, err := b.Start("worker", cmd)
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	h := &host{process: p, in: in, events: make(chan event, 64)}
	go h.read(read)
	return h, nil
}

func (h *host) read(r io.ReadCloser) {
	defer close(h.events)
	defer r.Close()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var e event
		if json.Unmarshal(line, &e) == nil {
			h.events <- e
		}
	}
}

// expect makes the worker record a run of n tasks.
func (h *host) expect(ctx context.Context, run uint32, n int) error {
	_, err := h.ask(ctx, order{Order: orderExpect, Run: run, Tasks: n}, eventExpecting)
	return err
}

// work makes the worker take deliveries, and returns once it can.
func (h *host) work(ctx context.Context) error {
	_, err := h.ask(ctx, order{Order: orderWork}, eventWorking)
	return err
}

// pause makes the worker finish what it holds and take nothing new.
func (h *host) pause(ctx context.Context) error {
	_, err := h.ask(ctx, order{Order: orderPause}, eventPaused)
	return err
}

// mark asks for the first start of a task due after t.
func (h *host) mark(t time.Time) error {
	return json.NewEncoder(h.in).Encode(order{Order: orderMark, At: t.UnixNano()})
}

func (h *host) report(ctx context.Context) (Report, error) {
	e, err := h.ask(ctx, order{Order: orderReport}, eventReport)
	if err != nil {
		return Report{}, err
	}
	return *e.Report, nil
}

// ask sends an order and waits for its answer; other events are dropped.
func (h *host) ask(ctx context.Context, o order, answer string) (event, error) {
	if err := json.NewEncoder(h.in).Encode(o); err != nil {
		return event{}, h.ended(err)
	}
	for {
		e, err := h.next(ctx, stallAfter)
		if err != nil {
			return event{}, fmt.Errorf("worker, asked to %s: %w", o.Order, err)
		}
		if e.Event == answer {
			return e, nil
		}
	}
}

// errStalled is returned when nothing happened for stallAfter.
var errStalled = errors.New("nothing happened for " + stallAfter.String())

// done waits until the worker has every task of the run and every ack is
// accepted, or nothing was delivered for stallAfter past idle.
func (h *host) done(ctx context.Context, run uint32, idle time.Duration, progress func(int)) error {
	wait := idle + stallAfter
	for {
		e, err := h.next(ctx, wait)
		if err != nil {
			return err
		}
		if e.Run != run {
			continue
		}
		progress(e.Seen)
		if e.Event == eventDone {
			return nil
		}
		wait = stallAfter
	}
}

func (h *host) next(ctx context.Context, wait time.Duration) (event, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case e, ok := <-h.events:
		switch {
		case !ok:
			return event{}, h.ended(io.EOF)
		case e.Event == eventFailed:
			return event{}, errors.New(e.Error)
		}
		return e, nil
	case <-timer.C:
		return event{}, errStalled
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}

func (h *host) ended(err error) error {
	return fmt.Errorf("worker process: %w:\n%s", err, h.process.Tail())
}

// close ends the worker process: at the end of its orders it finishes what it
// holds. Events still coming are dropped, so that it can write them.
func (h *host) close() error {
	err := h.in.Close()
	timer := time.AfterFunc(box.StopGrace, func() { _ = h.process.Kill() })
	defer timer.Stop()
	for range h.events {
	}
	<-h.process.Done()
	return err
}
