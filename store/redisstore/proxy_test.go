package redisstore_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// proxy stands between a client and a server, and may swallow what the server
// answers. It owns a goroutine to accept and two per connection.
type proxy struct {
	listener net.Listener
	server   atomic.Pointer[redistest.Server] // that new connections lead to,
	turns    atomic.Pointer[redistest.Server] // by turns with this one; nil: always
	lossy    atomic.Bool                      // close connections instead of passing answers on
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func startProxy(t *testing.T, server *redistest.Server) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener}
	p.server.Store(server)
	p.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			to := p.server.Load()
			if other := p.turns.Load(); other != nil {
				p.server.Store(other)
				p.turns.Store(to)
			}
			upstream, err := net.Dial("unix", to.Socket())
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, upstream, client)
			p.mu.Unlock()
			p.wg.Go(func() { defer upstream.Close(); io.Copy(upstream, client) })
			p.wg.Go(func() { defer client.Close(); p.answer(client, upstream) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.conns = nil
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// answer passes answers on until one is to be lost.
func (p *proxy) answer(client, upstream net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(buf)
		if err != nil || p.lossy.Load() {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestLostAnswersAreUnknown loses the answer to every call: each must say that
// its outcome is unknown, have run once, and work when repeated.
func TestLostAnswersAreUnknown(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server)
	w := newWorld(t, server)
	for _, op := range w.operations() {
		w.must(t, op.do(w.shardOf)) // so that the server knows all scripts
	}
	server.Do(t, "FLUSHALL")
	w = newWorld(t, server)
	far := open(t, "redis://"+p.listener.Addr().String())
	through := w.shardOf
	through.Store = far
	for _, op := range w.operations() {
		p.lossy.Store(true)
		if err := op.do(through); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("%s: error is %v, want %v", op.name, err, store.ErrUnknown)
		}
		p.lossy.Store(false)
		once := digest(t, server)
		eventually(t, op.name+" again", func() error { return op.do(through) })
		if digest(t, server) != once {
			t.Errorf("%s again is not the same as once", op.name)
		}
	}
}

// TestPartOfABatchIsUnknown fills the server up with the first script of a call.
func TestPartOfABatchIsUnknown(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	ctx := t.Context()
	used := infoNumber(t, server, "used_memory")
	server.Do(t, "CONFIG", "SET", "maxmemory", int64(used)+1<<20)
	_, _, err := s.Add(ctx, s.shard, newTasks(4000, 1))
	if !errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrFull) {
		t.Errorf("error is %v, want %v only", err, store.ErrUnknown)
	}
	stats, err := s.Stats(ctx, []store.Shard{s.shard})
	if err != nil || stats[0].Pending == 0 || stats[0].Pending == 4000 || stats[0].Seq != 1 {
		t.Errorf("stats are %+v, %v: want the first tasks, and seq raised once", stats, err)
	}
}

func TestDueTimesOutOfRangeAreRefused(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	ctx := t.Context()
	before := digest(t, server)
	tasks := newTasks(2000, 1)
	tasks[1500].Due = 1 << 60
	holds, _ := holdsFor(tasks)
	if _, _, err := s.Add(ctx, s.shard, tasks); err == nil {
		t.Error("added")
	}
	if _, _, err := s.HoldNew(ctx, s.shard, s.fence, tasks, holds); err == nil {
		t.Error("held")
	}
	if _, _, err := s.Edit(ctx, s.shard, []store.Edit{{ID: "a", Due: -1 << 60}}); err == nil {
		t.Error("moved")
	}
	if digest(t, server) != before {
		t.Error("a refused call changed something")
	}
}
