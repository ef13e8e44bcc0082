package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// RivalPatience is how long the session may be somebody else's before the process had
// better start anew. A rival that ends, or a failover that is undone, is over by then.
// Two processes that both live under one name take it from each other this often.
const RivalPatience = 5 * time.Minute

// Stolen returns an error once the session has been somebody else's for that long.
func (k *Keeper) Stolen(long time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fatal == nil || time.Since(k.fatalAt) < long {
		return nil
	}
	return fmt.Errorf("node %q: %w", k.node.Node, k.fatal)
}

// Keeper keeps this node's lease: it renews the session, and says when the shards
// are no longer ours because it could not. It owns one goroutine between start
// and close.
type Keeper struct {
	store  store.Owner
	log    *slog.Logger
	node   store.Session
	OnLost func() // lease ran out: shards must stop
	OnBack func() // lease is ours again: shards may claim

	OnAbsent func() // the lease has been lost for as long as it lasts

	// OnRenewed is told what the store's clock was when the session was renewed, and
	// between which moments that was; nil: nobody wants to know.
	OnRenewed func(sent, received, now time.Time)

	// OnForgotten is told that the store knew nothing of a session that it had; nil: nobody wants to know.
	OnForgotten func()

	// OnWanted is told of shards of this node that others asked for, if any; nil: nobody
	// wants to know.
	OnWanted func([]store.Wanted)

	// Answers reports whether somebody may be at the address of the process that has the session. It is asked before the
	// session of another start is taken that lasts still; nil: that is taken at once.
	Answers func(ctx context.Context, addr string) bool

	// Addr is where other nodes reach this one, as far as that is known by now; nil: as New was told.
	Addr func() string

	mu     sync.Mutex
	until  time.Time // monotonic: the lease is certainly alive before
	isLost bool
	absent bool  // OnAbsent was called since the lease was lost
	fatal  error // another process has our name

	fatalAt time.Time // since when, when fatal is set

	cancel context.CancelFunc
	done   chan struct{}
}

// Renewals is how often a lease is renewed within its time to live.
const Renewals = 4

// New returns a keeper of a session that is not open yet.
func New(st store.Owner, log *slog.Logger, node store.Session) *Keeper {
	return &Keeper{store: st, log: log, node: node, done: make(chan struct{})}
}

// NameTakenError says that a process of this node's name lives elsewhere.
type NameTakenError struct{ Node, Addr string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("the server at %s is node %q of this store, and lives: stop it, or give this one another --node-name", e.Addr, e.Node)
}

// Open opens the session: at once where nobody has it, or where nobody is at the address of who has it. Else the
// store is asked until that session is over. One that is renewed meanwhile is of a process that lives:
// NameTakenError. Open fails when the store does.
func (k *Keeper) Open(ctx context.Context) error {
	session := k.Session()
	session.Begin = k.Answers == nil
	for patience := time.Now().Add(k.node.TTL + k.node.TTL/2); ; {
		sent := time.Now()
		_, err := k.store.RenewSession(ctx, session)
		lost := (*store.SessionLostError)(nil)
		switch {
		case err == nil:
			k.until = sent.Add(k.node.TTL)
			return nil
		case !errors.As(err, &lost):
			return err
		case sent.After(patience):
			return &NameTakenError{k.node.Node, lost.Addr}
		case !k.Answers(ctx, lost.Addr):
			session.Begin = true
			continue
		}
		select {
		case <-time.After(k.node.TTL / Renewals):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// End ends the session, so that the next process of the name need not ask who has it. It comes behind Close.
func (k *Keeper) End(ctx context.Context) {
	if k.Answers == nil || k.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.node.TTL/2)
	defer cancel()
	last := k.Session()
	last.TTL = time.Millisecond
	_, _ = k.store.RenewSession(ctx, last) // else it runs out by itself
}

// Start keeps the session until close.
func (k *Keeper) Start() {
	run, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	go k.run(run)
}

func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	tick := time.NewTicker(k.node.TTL / Renewals)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.Renew(ctx)
		}
	}
}

// Renew renews once. The lease counts from when the call was sent, so it ends
// here no later than in the store.
func (k *Keeper) Renew(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, k.node.TTL/2)
	defer cancel()
	sent := time.Now()
	renewal, err := k.store.RenewSession(call, k.Session())
	if err == nil && k.OnRenewed != nil {
		k.OnRenewed(sent, time.Now(), renewal.Now)
	}
	if renewal.Forgot && k.OnForgotten != nil {
		k.OnForgotten()
	}
	if len(renewal.Wanted) > 0 && k.OnWanted != nil {
		k.OnWanted(renewal.Wanted)
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrSessionLost):
		k.Lost(err)
	case err == nil:
		k.extend(sent.Add(k.node.TTL))
	case !k.alive():
		k.expire(err)
	}
}

func (k *Keeper) extend(until time.Time) {
	k.mu.Lock()
	wasLost := k.isLost
	k.until, k.isLost, k.absent, k.fatal = until, false, false, nil
	k.mu.Unlock()
	if wasLost {
		k.log.Info("lease renewed, claiming shards", "node", k.node.Node)
		k.OnBack()
	}
}

func (k *Keeper) expire(err error) {
	k.mu.Lock()
	wasLost, wasAbsent := k.isLost, k.absent
	k.isLost = true
	k.absent = wasAbsent || time.Since(k.until) > k.node.TTL
	absent := k.absent
	k.mu.Unlock()
	if !wasLost {
		k.log.Warn("lease lost, shards stopped", "node", k.node.Node, "err", err)
		k.OnLost()
	}
	if absent && !wasAbsent {
		k.OnAbsent()
	}
}

// Lost records that the store knows another session under our name.
func (k *Keeper) Lost(err error) {
	k.mu.Lock()
	if k.fatal == nil {
		k.fatalAt = time.Now()
	}
	k.fatal = err
	k.mu.Unlock()
	k.expire(err)
}

// alive reports whether the lease is certainly ours, with a renewal's margin.
func (k *Keeper) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fatal == nil && time.Now().Before(k.until.Add(-k.node.TTL/Renewals))
}

// Err says why the lease is not ours; nil while it is.
func (k *Keeper) Err() error {
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

// Session is the node's, as the store knows it.
func (k *Keeper) Session() store.Session {
	session := k.node
	if k.Addr != nil {
		session.Addr = k.Addr()
	}
	return session
}

// Close stops renewing and waits. The lease runs out by itself.
func (k *Keeper) Close() {
	if k.cancel != nil {
		k.cancel()
		<-k.done
	}
}
