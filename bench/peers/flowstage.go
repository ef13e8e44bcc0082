package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

const (
	// flowWorkers are the worker processes, which share the handlers.
	flowWorkers = 2
	// flowReady bounds how long a process may take to be ready.
	flowReady = 90 * time.Second
)

// flowStage is a running system with its worker processes, and one that submits: a line with the id of
// a workflow on its standard input has it submit one.
type flowStage struct {
	box   *box.Box
	inst  *bench.Instance
	shape *flowShape
	rest  time.Duration // how long nothing may happen before what has not ended is given up

	workers   []*box.Process
	submitter *box.Process
	orders    io.WriteCloser

	mu   sync.Mutex
	book *flowBook // guarded by mu
}

// share is how many of the handlers the n-th worker process has.
func (p *plan) share(n int) string {
	return strconv.Itoa((p.options.Concurrency + n) / flowWorkers)
}

func (s *flowStage) startWorker(ctx context.Context, n int, cmd *exec.Cmd) error {
	process, err := s.start(ctx, fmt.Sprint("worker-", n), cmd)
	s.workers = append(s.workers, process)
	return err
}

func (s *flowStage) startSubmitter(ctx context.Context, cmd *exec.Cmd) (err error) {
	if s.orders, err = cmd.StdinPipe(); err != nil {
		return err
	}
	s.submitter, err = s.start(ctx, "submitter", cmd)
	return err
}

// start starts a process, and waits until it is ready. The goroutine that reads what it tells ends
// with it.
func (s *flowStage) start(ctx context.Context, name string, cmd *exec.Cmd) (*box.Process, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	process, err := s.box.Start(name, cmd)
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	ready := make(chan struct{})
	go s.read(read, sync.OnceFunc(func() { close(ready) }))
	select {
	case <-ready:
		return process, nil
	case <-process.Done():
		return nil, fmt.Errorf("%s ended:\n%s", name, process.Tail())
	case <-time.After(flowReady):
		return nil, fmt.Errorf("%s is not ready after %v:\n%s", name, flowReady, process.Tail())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read notes what a process tells. What it says besides, or had half said when it was killed, is
// nothing to note.
func (s *flowStage) read(from io.ReadCloser, ready func()) {
	defer from.Close()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		switch text := lines.Text(); text {
		case "ready":
			ready()
		default:
			s.mu.Lock()
			book := s.book
			s.mu.Unlock()
			if book != nil {
				_ = book.note(text, time.Now())
			}
		}
	}
}

// play plays a tenth of the workflows as a warm-up, and then all of them.
func (s *flowStage) play(ctx context.Context, line *result.Line) error {
	warm := max(1, s.shape.flows/10)
	if err := s.submit(ctx, s.turn("warm", warm), warm); err != nil {
		return err
	}
	book := s.turn("flow", s.shape.flows)
	begun, before := time.Now(), s.usage()
	var kill chan error
	if s.shape.killed {
		kill = make(chan error, 1)
		go func() { kill <- s.kill(ctx, book) }()
	}
	if err := s.submit(ctx, book, s.shape.flows); err != nil {
		return err
	}
	if kill != nil {
		if err := <-kill; err != nil {
			return err
		}
	} else { // of what is killed it is not known
		line.CPU = s.usage().Minus(before)
	}
	book.read(begun, line)
	return nil
}

// turn has a new book of n workflows, whose ids begin with a word.
func (s *flowStage) turn(word string, n int) *flowBook {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book = newFlowBook(s.shape, word, n)
	return s.book
}

// submit has n workflows submitted, so many at a time as the shape says, and waits until they have
// ended, or nothing happens any more.
func (s *flowStage) submit(ctx context.Context, book *flowBook, n int) error {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for sent, ended := 0, 0; ended < n; {
		for ; sent < n && sent-ended < s.shape.open; sent++ {
			if _, err := fmt.Fprintln(s.orders, book.id(sent)); err != nil {
				return fmt.Errorf("submit: %w:\n%s", err, s.submitter.Tail())
			}
		}
		select {
		case <-book.ended:
			ended++
		case <-look.C:
			if book.idle(time.Now()) > s.rest {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// kill kills a worker process when half of the handlers have ended. What has not ended then has the
// whole rest to do so.
func (s *flowStage) kill(ctx context.Context, book *flowBook) error {
	select {
	case <-book.half:
		book.stir(time.Now())
		return s.workers[0].Kill()
	case <-ctx.Done():
		return ctx.Err()
	case <-s.submitter.Done():
		return fmt.Errorf("the submitter ended:\n%s", s.submitter.Tail())
	}
}

// usage is what every party used up to now, in seconds.
func (s *flowStage) usage() result.Roles {
	clients := append([]*box.Process{s.submitter}, s.workers...)
	return result.Roles{Client: box.CPU(clients), Server: box.CPU(s.inst.Server), Store: box.CPU(s.inst.Disk)}
}
