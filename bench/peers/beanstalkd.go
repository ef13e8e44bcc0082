package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
)

// beanstalkdSystem is beanstalkd with its binlog on, synced at most every 50 ms.
func beanstalkdSystem() bench.System {
	return bench.System{Name: "beanstalkd", Open: openBeanstalkd, Dial: dialBeanstalkd}
}

const (
	beanstalkdPriority = 1024
	beanstalkdTTR      = 30 * time.Second
	// beanstalkdReserve is how long one reserve waits, and so how long a worker
	// takes to stop.
	beanstalkdReserve = time.Second
)

func openBeanstalkd(ctx context.Context, _ bench.Options, b *box.Box) (*bench.Instance, error) {
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		return nil, fmt.Errorf("beanstalkd is %w (Debian: apt-get install beanstalkd)", box.ErrMissing)
	}
	version, err := exec.CommandContext(ctx, path, "-v").Output()
	if err != nil {
		return nil, err
	}
	dir, err := b.Mkdir("beanstalkd")
	if err != nil {
		return nil, err
	}
	addr, err := b.Addr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	p, err := b.Start("beanstalkd", exec.Command(path, "-l", "127.0.0.1", "-p", port, "-b", dir))
	if err != nil {
		return nil, err
	}
	if err := p.WaitReady(ctx, func(ctx context.Context) error { return box.Dialable(ctx, addr) }); err != nil {
		return nil, err
	}
	return &bench.Instance{
		Target:   addr,
		Store:    "binlog-50ms",
		Version:  strings.TrimPrefix(strings.TrimSpace(string(version)), "beanstalkd "),
		Settings: "binlog synced at most every 50ms, as shipped; delays are whole seconds, rounded up; no batch call: batches are single calls, 64 at a time",
		Server:   []*box.Process{p},
	}, nil
}

// beanstalkdDriver keeps connections: each carries one call at a time.
type beanstalkdDriver struct {
	addr string
	mu   sync.Mutex // guards idle
	idle []*beanstalk.Conn
}

func dialBeanstalkd(_ context.Context, target string) (bench.Driver, error) {
	return &beanstalkdDriver{addr: target}, nil
}

func (d *beanstalkdDriver) take() (*beanstalk.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.idle); n > 0 {
		c := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return c, nil
	}
	return beanstalk.Dial("tcp", d.addr)
}

func (d *beanstalkdDriver) put(c *beanstalk.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, c)
}

func (d *beanstalkdDriver) Enqueue(ctx context.Context, tasks []bench.Task) error {
	return spread(ctx, tasks, func(ctx context.Context, t bench.Task) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := d.take()
		if err != nil {
			return err
		}
		if _, err := c.Put(t.Payload, beanstalkdPriority, wholeSeconds(t.Due), beanstalkdTTR); err != nil {
			return errors.Join(err, c.Close())
		}
		d.put(c)
		return nil
	})
}

// Work reserves on a connection for each handler.
func (d *beanstalkdDriver) Work(ctx context.Context, s bench.Session) error {
	conns := make([]*beanstalk.Conn, s.Concurrency)
	for i := range conns {
		c, err := d.take()
		if err != nil {
			return err
		}
		conns[i] = c
	}
	s.Ready()
	var handlers sync.WaitGroup
	errs := make([]error, len(conns))
	for i, c := range conns {
		handlers.Go(func() { errs[i] = reserve(ctx, c, s) })
	}
	handlers.Wait()
	for _, c := range conns {
		d.put(c)
	}
	return errors.Join(errs...)
}

// reserve handles tasks on one connection until ctx ends. How often a task was
// reserved costs a call to ask, so a repeat counts as a duplicate.
func reserve(ctx context.Context, c *beanstalk.Conn, s bench.Session) error {
	for ctx.Err() == nil {
		id, payload, err := c.Reserve(beanstalkdReserve)
		if errors.Is(err, beanstalk.ErrTimeout) {
			continue
		}
		if err != nil {
			return err
		}
		s.Handle(ctx, bench.Delivery{Payload: payload})
		if err := c.Delete(id); err != nil {
			return err
		}
		s.Acked(1)
	}
	return nil
}

func (d *beanstalkdDriver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, c := range d.idle {
		errs = append(errs, c.Close())
	}
	d.idle = nil
	return errors.Join(errs...)
}
