package actors

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// keeper keeps this node's lease: it renews the session, and says when the shards
// are no longer ours because it could not. It owns one goroutine between start
// and close.
type keeper struct {
	store  store.Owner
	log    *slog.Logger
	node   store.Session
	onLost func() // lease ran out: shards must stop
	onBack func() // lease is ours again: shards may claim

	onAbsent func() // the lease has been lost for as long as it lasts

	mu     sync.Mutex
	until  time.Time // monotonic: the lease is certainly alive before
	isLost bool
	absent bool  // onAbsent was called since the lease was lost
	fatal  error // another process has our name

	fatalAt time.Time // since when, when fatal is set

	cancel context.CancelFunc
	done   chan struct{}
}

// renewals is how often a lease is renewed within its time to live.
const renewals = 4

func newKeeper(st store.Owner, log *slog.Logger, node store.Session) *keeper {
	return &keeper{store: st, log: log, node: node, done: make(chan struct{})}
}

// open opens the session. It fails when the store does.
func (k *keeper) open(ctx context.Context) error {
	begin := k.node
	begin.Begin = true
	sent := time.Now()
	if _, err := k.store.RenewSession(ctx, begin); err != nil {
		return err
	}
	k.until = sent.Add(k.node.TTL)
	return nil
}

// start keeps the session until close.
func (k *keeper) start() {
	run, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	go k.run(run)
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	tick := time.NewTicker(k.node.TTL / renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.renew(ctx)
		}
	}
}

// renew renews once. The lease counts from when the call was sent, so it ends
// here no later than in the store.
func (k *keeper) renew(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, k.node.TTL/2)
	defer cancel()
	sent := time.Now()
	_, err := k.store.RenewSession(call, k.node)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrSessionLost):
		k.lost(err)
	case err == nil:
		k.extend(sent.Add(k.node.TTL))
	case !k.alive():
		k.expire(err)
	}
}

func (k *keeper) extend(until time.Time) {
	k.mu.Lock()
	wasLost := k.isLost
	k.until, k.isLost, k.absent, k.fatal = until, false, false, nil
	k.mu.Unlock()
	if wasLost {
		k.log.Info("lease renewed, claiming shards", "node", k.node.Node)
		k.onBack()
	}
}

func (k *keeper) expire(err error) {
	k.mu.Lock()
	wasLost, wasAbsent := k.isLost, k.absent
	k.isLost = true
	k.absent = wasAbsent || time.Since(k.until) > k.node.TTL
	absent := k.absent
	k.mu.Unlock()
	if !wasLost {
		k.log.Warn("lease lost, shards stopped", "node", k.node.Node, "err", err)
		k.onLost()
	}
	if absent && !wasAbsent {
		k.onAbsent()
	}
}

// lost records that the store knows another session under our name.
func (k *keeper) lost(err error) {
	k.mu.Lock()
	if k.fatal == nil {
		k.fatalAt = time.Now()
	}
	k.fatal = err
	k.mu.Unlock()
	k.expire(err)
}

// alive reports whether the lease is certainly ours, with a renewal's margin.
func (k *keeper) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fatal == nil && time.Now().Before(k.until.Add(-k.node.TTL/renewals))
}

// err says why the lease is not ours; nil while it is.
func (k *keeper) err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.fatal != nil:
		return k.fatal
	case k.isLost:
		return store.ErrUnavailable
	}
	return nil
}

func (k *keeper) session() store.Session { return k.node }

// close stops renewing and waits. The lease runs out by itself.
func (k *keeper) close() {
	if k.cancel != nil {
		k.cancel()
		<-k.done
	}
}
