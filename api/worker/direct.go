package worker

import (
	"context"
	"sync"
	"time"
)

// detourAfter is how long a node that wants shards may be out of reach before its
// tasks are taken by way of another one.
const detourAfter = 10 * time.Second

// direct keeps a session at every node on behalf of a subscription. While it does
// not know the nodes, or one is out of reach, there is the ordinary session, at
// whichever node the worker's connection leads to: it takes from all of them.
//
// Sessions at nodes have no credit but for tasks that are ready there, so room is
// never tied up; beside an ordinary session they get what that one leaves.
type direct struct {
	topic   *topicWorker
	moved   chan struct{} // a session opened or ended
	refused chan error    // the ordinary session is, for good
	keepers sync.WaitGroup

	nodes    map[member]*keeper // by name and address alone
	ordinary *keeper            // nil when there is none
	warned   bool               // since all nodes were reached last
}

// keeper is a goroutine that keeps one session.
type keeper struct {
	cancel context.CancelFunc
	again  chan struct{} // there is a reason to connect at once

	mu    sync.Mutex
	open  bool      // guarded by mu
	since time.Time // that it has been open, or not; guarded by mu
}

// stayDirect keeps the subscription connected to every node until ctx ends. It
// returns an error when the server refuses for good.
func (t *topicWorker) stayDirect(ctx context.Context) error {
	d := &direct{
		topic:   t,
		moved:   make(chan struct{}, 1),
		refused: make(chan error, 1),
		nodes:   make(map[member]*keeper),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer d.keepers.Wait()
	defer cancel()
	for {
		members, changed := t.fleet.members()
		d.follow(ctx, members)
		look := time.NewTimer(d.choose(ctx, members, time.Now()))
		select {
		case <-changed:
			d.hurry()
		case <-d.moved:
		case <-look.C:
		case err := <-d.refused:
			return err
		case <-ctx.Done():
			look.Stop()
			return nil
		}
		look.Stop()
	}
}

// follow has a keeper for each node. A node that stands alone needs none, once
// there is an ordinary session.
func (d *direct) follow(ctx context.Context, members []member) {
	wanted := make(map[member]bool, len(members))
	for _, m := range members {
		key := member{name: m.name, addr: m.addr}
		wanted[key] = len(members) > 1 || d.nodes[key] != nil && !d.ordinary.isOpen()
	}
	for m, k := range d.nodes {
		if !wanted[m] {
			k.cancel()
			delete(d.nodes, m)
		}
	}
	for m, is := range wanted {
		if is && d.nodes[m] == nil {
			d.nodes[m] = d.keep(ctx, m)
		}
	}
}

// choose starts or ends the ordinary session, and returns when to look again.
func (d *direct) choose(ctx context.Context, members []member, now time.Time) time.Duration {
	open, missing, longest := 0, "", time.Duration(-1)
	for _, m := range members {
		k := d.nodes[member{name: m.name, addr: m.addr}]
		isOpen, since := k.state()
		switch {
		case isOpen:
			open++
		case m.active && k != nil && now.Sub(since) > longest:
			missing, longest = m.name, now.Sub(since)
		}
	}
	switch {
	case len(members) > 1 && open > 0 && missing == "":
		d.warned = false
		if d.ordinary != nil {
			d.ordinary.cancel()
			d.ordinary = nil
		}
	case len(members) > 1 && longest >= detourAfter:
		if !d.warned {
			d.warned = true
			d.topic.cfg.Logger.Warn("a node is out of reach; tasks come by way of another one", "topic", d.topic.sub.topic, "node", missing)
		}
		d.detour(ctx)
	case len(members) <= 1 || open == 0:
		d.detour(ctx)
	}
	if missing != "" && longest < detourAfter {
		return detourAfter - longest
	}
	return lookEvery
}

// detour starts the ordinary session unless there is one.
func (d *direct) detour(ctx context.Context) {
	if d.ordinary == nil {
		d.ordinary = d.keep(ctx, member{})
	}
}

// keep starts a keeper, of the ordinary session when m is none.
func (d *direct) keep(ctx context.Context, m member) *keeper {
	ctx, cancel := context.WithCancel(ctx)
	k := &keeper{cancel: cancel, again: make(chan struct{}, 1), since: time.Now()}
	at := &place{rpc: d.topic.rpc, node: m.name, again: k.again, moved: func(open bool) { k.set(open); poke(d.moved) }}
	d.keepers.Go(func() {
		defer cancel()
		if m.name != "" {
			n, err := d.topic.fleet.node(m.addr)
			if err != nil {
				d.topic.cfg.Logger.Warn("node has no address to dial", "node", m.name, "addr", m.addr, "err", err)
				return
			}
			defer d.topic.fleet.drop(n)
			at.rpc = n.queue
		}
		if err := d.topic.stayConnected(ctx, at); err != nil {
			select {
			case d.refused <- err:
			default: // another was, too
			}
		}
	})
	return k
}

// hurry has nodes that are out of reach tried again at once: they may be back.
func (d *direct) hurry() {
	for _, k := range d.nodes {
		poke(k.again)
	}
}

func (k *keeper) set(open bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open, k.since = open, time.Now()
}

// state says whether the session is open, and since when it is or is not. There
// may be no keeper.
func (k *keeper) state() (open bool, since time.Time) {
	if k == nil {
		return false, time.Time{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open, k.since
}

func (k *keeper) isOpen() bool {
	open, _ := k.state()
	return open
}
