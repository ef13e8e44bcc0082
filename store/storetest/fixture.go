package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	long  = time.Hour            // what does not pass during a case
	short = 5 * time.Millisecond // what a case waits for
	slack = 2 * time.Millisecond // rounding of a moment to the millisecond, either way
)

// fixture is a store under test, with a shard that the case owns.
type fixture struct {
	*testing.T
	s       store.Store
	ctx     context.Context
	shard   store.Shard
	session store.Session
	fence   store.Fence
}

func newFixture(t *testing.T, s store.Store) *fixture {
	t.Helper()
	f := &fixture{T: t, s: s, ctx: t.Context(), shard: store.Shard{Topic: "mail", N: 0}}
	f.session = f.begin("node-1", long)
	f.fence = f.claim(f.shard, f.session)
	return f
}

// begin starts the session of a node.
func (f *fixture) begin(node string, ttl time.Duration) store.Session {
	f.Helper()
	session := store.Session{Node: node, Start: store.NewToken(), TTL: ttl, Addr: node + ":9090", Begin: true}
	_, err := f.s.RenewSession(f.ctx, session)
	f.ok("begin session", err)
	session.Begin = false
	return session
}

// claim takes a shard, which must be free.
func (f *fixture) claim(shard store.Shard, session store.Session) store.Fence {
	f.Helper()
	_, fence, err := f.s.Claim(f.ctx, shard, session)
	f.ok("claim", err)
	return fence
}

// now returns the store's clock in milliseconds, rounded down.
func (f *fixture) now() store.Millis {
	f.Helper()
	now, err := f.s.Clock(f.ctx)
	f.ok("clock", err)
	return store.Millis(now.UnixMilli())
}

// waiter is what waiting asks of a *testing.T or *rapid.T.
type waiter interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

// waitUntil returns once the store's clock has reached moment.
func waitUntil(t waiter, s store.Store, moment store.Millis) {
	t.Helper()
	for {
		now, err := s.Clock(t.Context())
		if err != nil {
			t.Fatalf("clock: %v", err)
		}
		left := moment.Time().Sub(now)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 10*time.Millisecond)) // a slice at most: the store's clock may run faster
	}
}

// task returns a task that was asked for with nothing special about it.
func task(id string, due store.Millis) *store.Task {
	return &store.Task{ID: id, Payload: []byte("payload of " + id), Due: due, Created: 1, MaxRetries: -1, Fingerprint: 7}
}

// tasks returns a task for each id, all due at the same time.
func tasks(due store.Millis, ids ...string) []*store.Task {
	batch := make([]*store.Task, len(ids))
	for i, id := range ids {
		batch[i] = task(id, due)
	}
	return batch
}

// numbered returns n ids in ascending order.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("task-%06d", i)
	}
	return ids
}

// add adds tasks that must be new.
func (f *fixture) add(batch ...*store.Task) {
	f.Helper()
	_, results, err := f.s.Add(f.ctx, f.shard, batch)
	f.ok("add", err)
	f.statuses("add", results, repeat(store.Added, len(batch))...)
}

// ready adds tasks that have been due for a second.
func (f *fixture) ready(ids ...string) { f.Helper(); f.add(tasks(f.now()-1000, ids...)...) }

// scheduled adds tasks that are due in an hour.
func (f *fixture) scheduled(ids ...string) {
	f.Helper()
	f.add(tasks(f.now().Add(long), ids...)...)
}

// untouched has a commit delete a task if nothing became of it since.
func (f *fixture) untouched(id string) store.Remove {
	f.Helper()
	return store.Remove{ID: id, Due: f.get(id).Due}
}

// hold holds tasks that must be ready, for a long time, and returns their tokens.
func (f *fixture) hold(ids ...string) []store.Token { f.Helper(); return f.holdFor(long, ids...) }

// holdFor is hold for the given visibility timeout.
func (f *fixture) holdFor(visibility time.Duration, ids ...string) []store.Token {
	f.Helper()
	holds := holdsOf(visibility, ids...)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
	f.ok("hold", err)
	f.statuses("hold", results, repeat(store.OK, len(ids))...)
	tokens := make([]store.Token, len(ids))
	for i, h := range holds {
		tokens[i] = h.Token
	}
	return tokens
}

// holdsOf asks for tasks with a new token each.
func holdsOf(visibility time.Duration, ids ...string) []store.Hold {
	holds := make([]store.Hold, len(ids))
	for i, id := range ids {
		holds[i] = store.Hold{ID: id, Token: store.NewToken(), Visibility: visibility, Worker: "worker-1"}
	}
	return holds
}

// held adds a task and holds it for a long time.
func (f *fixture) held(id string) store.Token {
	f.Helper()
	f.ready(id)
	return f.hold(id)[0]
}

// done adds a task, holds it and acks it with a long retention.
func (f *fixture) done(id string) store.Token {
	f.Helper()
	token := f.held(id)
	f.ack(long, store.OK, store.Ack{ID: id, Token: token})
	return token
}

// dead adds a task, holds it and dead-letters it.
func (f *fixture) dead(id string) {
	f.Helper()
	token := f.held(id)
	result := f.nack(store.Nack{ID: id, Token: token, Reason: store.ReasonPermanent, Error: "bad " + id})
	equal(f, "status of the nack", result.Status, store.OK)
}

// expired adds a task that expires before it is held.
func (f *fixture) expired(id string) {
	f.Helper()
	t := task(id, f.now()-1000)
	t.Expires = f.now() - 500
	f.add(t)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, id))
	f.ok("hold", err)
	f.statuses("hold", results, store.Expired)
}

// ack acks with one expected status for all.
func (f *fixture) ack(retention time.Duration, want store.Status, acks ...store.Ack) {
	f.Helper()
	_, got, err := f.s.Ack(f.ctx, f.shard, acks, retention)
	f.ok("ack", err)
	f.statuses("ack", got, repeat(want, len(acks))...)
}

// nack nacks one task.
func (f *fixture) nack(n store.Nack) store.NackResult {
	f.Helper()
	_, results, err := f.s.Nack(f.ctx, f.shard, []store.Nack{n})
	f.ok("nack", err)
	return one(f, results)
}

// get returns one task.
func (f *fixture) get(id string) store.Snapshot {
	f.Helper()
	_, snapshots, err := f.s.Get(f.ctx, f.shard, []string{id})
	f.ok("get", err)
	return one(f, snapshots)
}

// states checks the states of tasks.
func (f *fixture) states(want store.State, ids ...string) {
	f.Helper()
	_, snapshots, err := store.GetAll(f.ctx, f.s, f.shard, ids)
	f.ok("get", err)
	if len(snapshots) != len(ids) {
		f.Fatalf("get returned %d tasks for %d ids", len(snapshots), len(ids))
	}
	for i, got := range snapshots {
		if got.State != want {
			f.Fatalf("task %q is %v, want %v", ids[i], got.State, want)
		}
	}
}

// stats returns the numbers of the case's shard.
func (f *fixture) stats() store.Stats {
	f.Helper()
	stats, err := f.s.Stats(f.ctx, []store.Shard{f.shard})
	f.ok("stats", err)
	return one(f, stats)
}

// seq returns how often tasks of the case's shard became pending.
func (f *fixture) seq() int64 { f.Helper(); return f.stats().Seq }

// window returns the ids of up to a thousand pending tasks, however late they are due.
func (f *fixture) window() []string {
	f.Helper()
	_, entries, err := f.s.Window(f.ctx, f.shard, store.WindowQuery{To: f.now().Add(1000 * long), Limit: 1000})
	f.ok("window", err)
	return idsOf(entries)
}

func idsOf(entries []store.Entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

// ok fails the case on an error.
func (f *fixture) ok(what string, err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// refused fails the case unless err is want.
func (f *fixture) refused(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// statuses checks the statuses of a batch's results.
func (f *fixture) statuses(what string, results any, want ...store.Status) {
	f.Helper()
	got := statusesOf(results)
	if len(got) != len(want) {
		f.Fatalf("%s: got %d results, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			f.Fatalf("%s: status of item %d of %d is %s, want %s", what, i, len(got), got[i], want[i])
		}
	}
}

// statusesOf returns the Status of each result of a batch.
func statusesOf(results any) []store.Status {
	if statuses, ok := results.([]store.Status); ok {
		return statuses
	}
	v := reflect.ValueOf(results)
	statuses := make([]store.Status, v.Len())
	for i := range statuses {
		statuses[i] = v.Index(i).FieldByName("Status").Interface().(store.Status)
	}
	return statuses
}

// about checks a moment that the store derived from its clock.
func (f *fixture) about(what string, got store.Millis, want time.Time) {
	f.Helper()
	if d := got.Time().Sub(want); d < -slack || d > slack {
		f.Fatalf("%s is %v, want %v (off by %v)", what, got.Time(), want, d)
	}
}

// notBefore checks a moment that must not come too early, not by a microsecond.
func (f *fixture) notBefore(what string, got store.Millis, want time.Time) {
	f.Helper()
	if early := want.Sub(got.Time()); early > 0 {
		f.Fatalf("%s is %v, which is %v too early", what, got.Time(), early)
	}
}

// equal fails the case unless got is want.
func equal[T comparable](f *fixture, what string, got, want T) {
	f.Helper()
	if got != want {
		f.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// same fails the case unless the slices hold the same.
func same[T comparable](f *fixture, what string, got, want []T) {
	f.Helper()
	if len(got) != len(want) {
		f.Fatalf("%s: got %d items %.300v, want %d %.300v", what, len(got), got, len(want), want)
	}
	for i := range got {
		if got[i] != want[i] {
			f.Fatalf("%s: item %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
}

// one returns the only result of a batch of one.
func one[T any](f *fixture, results []T) T {
	f.Helper()
	if len(results) != 1 {
		f.Fatalf("got %d results for one item", len(results))
	}
	return results[0]
}

func repeat[T any](v T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}
