package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

func orderCases() []entry {
	return []entry{
		{"Order/OneAtATimeByDueTime", orderOneAtATime},
		{"Order/InOneBatch", orderBatch},
		{"Order/RetryKeepsTheHead", orderRetry},
		{"Order/ReleaseKeepsTheHead", orderRelease},
		{"Order/RecoverKeepsTheHead", orderRecover},
		{"Order/DeadHeadLetsGo", orderDead},
		{"Order/RemovedHeadLetsGo", orderRemoved},
		{"Order/ExpiredHeadLetsGo", orderExpired},
		{"Order/EditMovesWhatWasNotHeld", orderEdit},
		{"Order/EqualDueTimesByID", orderTies},
		{"Order/NeverHeldAsAdded", orderHoldNew},
		{"Order/KeysAreApart", orderApart},
		{"Order/Sealed", orderSealed},
		{"Order/SealedRequeue", orderSealedRequeue},
		{"Order/IdempotencyKeysOfTheirOwn", orderKeyed},
		{"Order/ReplacedBeginsAnew", orderReplaced},
		{"Order/EndsWithTheShard", orderDropped},
		{"Order/SweepLeavesItAlone", orderSwept},
		{"Order/OneOfManyRivalsGetsIt", orderRivals},
	}
}

// ordered returns a task of an ordering key.
func ordered(id string, due store.Millis, key string) *store.Task {
	t := task(id, due)
	t.Traits = &store.Traits{OrderingKey: key}
	return t
}

// line adds tasks of the ordering key k, each due a millisecond after the one before.
func (f *fixture) line(ids ...string) {
	f.Helper()
	due := f.now() - 1000
	for i, id := range ids {
		f.add(ordered(id, due+store.Millis(i), "k"))
	}
}

// inOrder checks the unfinished tasks of the key k.
func (f *fixture) inOrder(want ...string) {
	f.Helper()
	same(f, "tasks of the key", orderOf(f, "k"), want)
}

func orderOf(f *fixture, key string) (ids []string) {
	f.Helper()
	_, found, err := f.s.InOrder(f.ctx, f.shard, []string{key}, 1000)
	f.ok("in order", err)
	for _, o := range one(f, found) {
		ids = append(ids, o.ID)
	}
	return ids
}

// behind checks that a task is not held because of another one, and when that is due.
func (f *fixture) behind(id, head string, due store.Millis) {
	f.Helper()
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, id))
	f.ok("hold", err)
	f.statuses("hold of "+id, results, store.Behind)
	equal(f, "head before "+id, results[0].Head, head)
	equal(f, "due time of the head", results[0].Due, due)
	if results[0].Task != nil {
		f.Fatalf("task %q that is behind was returned", id)
	}
}

// orderOneAtATime: messages of a FIFO group that are in flight keep the rest of the
// group back (AWS docs on SQS FIFO; asked for in hibiken/asynq#227, taskforcesh/bullmq#91).
func orderOneAtATime(f *fixture) {
	f.add(ordered("later", f.now().Add(long), "k"))
	f.line("a", "b")
	f.inOrder("a", "b", "later")
	f.behind("b", "a", f.get("a").Due)

	token := f.hold("a")[0]
	f.behind("b", "a", 0)
	f.inOrder("a", "b", "later")
	_, again, err := f.s.Hold(f.ctx, f.shard, f.fence, []store.Hold{{ID: "a", Token: token, Visibility: long}})
	f.ok("hold", err)
	f.statuses("the same hold again", again, store.OK)

	_, found, err := f.s.InOrder(f.ctx, f.shard, []string{"none", "k"}, 2)
	f.ok("in order", err)
	equal(f, "tasks of no key", len(found[0]), 0)
	equal(f, "tasks of the key", len(found[1]), 2)
	equal(f, "the first is held", found[1][0].Held, true)
	equal(f, "due time of what is held", found[1][0].Due, 0)
	equal(f, "the second is held", found[1][1].Held, false)
	equal(f, "due time of the second", found[1][1].Due, f.get("b").Due)
	sameTraits(f, "traits of the second", found[1][1].Traits, &store.Traits{OrderingKey: "k"})

	f.ack(0, store.OK, store.Ack{ID: "a", Token: token})
	f.ack(long, store.OK, store.Ack{ID: "b", Token: f.hold("b")[0]})
	f.inOrder("later")
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "later"))
	f.ok("hold", err)
	f.statuses("hold of the last one", results, store.NotDue)
}

func orderBatch(f *fixture) {
	f.line("a", "b", "c")
	f.ready("plain")
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "c", "plain", "a", "b"))
	f.ok("hold", err)
	f.statuses("hold", results, store.Behind, store.OK, store.OK, store.Behind)
	for _, i := range []int{0, 3} {
		equal(f, "head", results[i].Head, "a")
	}
	equal(f, "number held", f.stats().Running, 2)
	f.states(store.StateReady, "b", "c")
}

func orderRetry(f *fixture) {
	f.line("a", "b")
	due := f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Delay: long}).Due
	f.behind("b", "a", due)
	f.inOrder("a", "b")
	_, moved, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: f.now().Add(2 * long)}})
	f.ok("edit", err)
	f.statuses("edit", moved, store.OK)
	f.inOrder("a", "b")
	_, moved, err = f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "b", Due: 1}, {ID: "a", Now: true}})
	f.ok("edit", err)
	f.statuses("edit", moved, store.OK, store.OK)
	f.inOrder("a", "b")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	f.hold("b")
}

// orderRelease: what a worker that stops gives back goes first when it comes again.
func orderRelease(f *fixture) {
	f.line("a", "b")
	for range 2 {
		r := f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Uncount: true})
		equal(f, "attempts", r.Attempt, 0)
		f.inOrder("a", "b")
		f.behind("b", "a", r.Due)
	}
	f.add(ordered("older", 1, "k"))
	f.inOrder("a", "older", "b")
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	f.inOrder("older", "b")
}

func orderRecover(f *fixture) {
	f.line("a", "b")
	token := f.holdFor(time.Millisecond, "a")[0]
	waitUntil(f, f.s, f.get("a").Deadline)
	f.behind("b", "a", 0)
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "a", Token: token, Delay: long}})
	f.ok("recover", err)
	f.statuses("recover", recovered, store.OK)
	f.behind("b", "a", recovered[0].Due)
}

func orderDead(f *fixture) {
	f.line("a", "b", "c")
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Reason: store.ReasonMaxRetries})
	f.inOrder("b", "c")
	token := f.hold("b")[0]
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	f.inOrder("b", "c", "a") // it begins anew, and is due now
	f.ack(0, store.OK, store.Ack{ID: "b", Token: token})
	f.behind("a", "c", f.get("c").Due)

	_, cancelled, err := f.s.Cancel(f.ctx, f.shard, []string{"c"})
	f.ok("cancel", err)
	f.statuses("cancel of what waits", cancelled, store.WrongState)
	token = f.hold("c")[0]
	_, _, err = f.s.Cancel(f.ctx, f.shard, []string{"c"})
	f.ok("cancel", err)
	f.nack(store.Nack{ID: "c", Token: token})
	f.states(store.StateDead, "c")
	f.hold("a")
}

func orderRemoved(f *fixture) {
	f.line("a", "b", "c", "d")
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Delay: long})
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a", "c"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK, store.OK)
	f.inOrder("b", "d")
	_, removed, err = f.s.Remove(f.ctx, f.shard, store.Removals("b"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	f.hold("d")
}

func orderExpired(f *fixture) {
	old := ordered("a", f.now()-2000, "k")
	old.Expires = f.now() - 1
	f.add(old, ordered("b", f.now()-1000, "k"))
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "a"))
	f.ok("hold", err)
	f.statuses("hold", results, store.Expired)
	f.inOrder("b")
	f.hold("b")
}

func orderEdit(f *fixture) {
	f.line("a", "b", "c")
	due := f.get("a").Due
	_, moved, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: due + 1}, {ID: "c", Due: due - 1}})
	f.ok("edit", err)
	f.statuses("edit", moved, store.OK, store.OK)
	f.inOrder("c", "a", "b")

	changed := f.get("c").Task
	changed.Payload, changed.Traits = []byte("other"), &store.Traits{OrderingKey: "k", Priority: 3, RateKey: "r"}
	_, moved, err = f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "c", Task: &changed, Due: due + 5}})
	f.ok("edit", err)
	f.statuses("edit", moved, store.OK)
	f.inOrder("a", "b", "c")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	f.ack(0, store.OK, store.Ack{ID: "b", Token: f.hold("b")[0]})
	f.ack(0, store.OK, store.Ack{ID: "c", Token: f.hold("c")[0]})
	f.inOrder()
}

func orderTies(f *fixture) {
	due := f.now() - 1
	const first, second = "01890a5d-ac96-8ddc-8123-0badcafe0001", "01890a5d-ac96-8ddc-8124-0badcafe0000"
	f.add(ordered("z", due, "k"), ordered(second, due, "k"), ordered("0", due, "k"), ordered(first, due, "k"), ordered("y", due-1, "k"))
	got := orderOf(f, "k")
	equal(f, "the one that is due first", got[0], "y")
	if slices.Index(got, first) > slices.Index(got, second) {
		f.Fatalf("ids that were made one after the other are in order %v", got)
	}
	if slices.Index(got, "0") > slices.Index(got, "z") {
		f.Fatalf("ids are in order %v", got)
	}
}

func orderHoldNew(f *fixture) {
	_, results, err := f.s.HoldNew(f.ctx, f.shard, f.fence,
		[]*store.Task{task("plain", f.now()-1), ordered("a", f.now()-1, "k")}, holdsOf(long, "plain", "a"))
	f.ok("hold new", err)
	f.statuses("hold new", results, store.Held, store.Added)
	f.states(store.StateReady, "a")
	f.inOrder("a")
	f.hold("a")
}

// orderApart has keys that begin like others, and ids that look like parts of one.
func orderApart(f *fixture) {
	due, longest := f.now()-1, strings.Repeat("k", store.MaxKey)
	keys := []string{"k", "kk", "k\x00", "\xff", "\x00", longest, longest[1:]}
	for i, key := range keys {
		all := everyTrait()
		all.OrderingKey = key
		t := ordered(fmt.Sprint(i), due, key)
		if i%2 == 0 {
			t.Traits = all
		}
		f.add(t, ordered(fmt.Sprint(i, "k\x00"), due+1, key))
	}
	for i, key := range keys {
		same(f, fmt.Sprintf("tasks of key %q", key), orderOf(f, key), []string{fmt.Sprint(i), fmt.Sprint(i, "k\x00")})
		f.hold(fmt.Sprint(i))
		f.behind(fmt.Sprint(i, "k\x00"), fmt.Sprint(i), 0)
	}
}

// addOrdered adds one task as it is when a topic has former shards.
func (f *fixture) addOrdered(want store.Status, t *store.Task) store.AddResult {
	f.Helper()
	_, results, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{t})
	f.ok("add", err)
	f.statuses("add of "+t.ID, results, want)
	equal(f, "id", results[0].ID, t.ID)
	return results[0]
}

func orderSealed(f *fixture) {
	due := f.now() - 1000
	f.addOrdered(store.Added, ordered("a", due, "k"))
	f.dead("gone")
	before := f.seq()
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	equal(f, "due", f.addOrdered(store.Added, ordered("b", due+1, "k")).Due, due+1)
	equal(f, "seq", f.seq(), before+1)
	f.addOrdered(store.Closed, ordered("x", due, "other"))
	f.addOrdered(store.Closed, task("y", due))
	equal(f, "state of a known one", f.addOrdered(store.Duplicate, ordered("a", due, "k")).State, store.StateReady)
	other := ordered("a", due, "k")
	other.Fingerprint++
	f.addOrdered(store.Conflict, other)
	_, _, err := f.s.Add(f.ctx, f.shard, []*store.Task{ordered("c", due, "k")})
	f.refused("add", err, store.ErrSealed)

	token := f.hold("a")[0]
	f.addOrdered(store.Added, ordered("c", 1, "k"))
	f.inOrder("a", "c", "b")
	f.ack(long, store.OK, store.Ack{ID: "a", Token: token})
	f.ack(long, store.OK, store.Ack{ID: "c", Token: f.hold("c")[0]})
	f.nack(store.Nack{ID: "b", Token: f.hold("b")[0], Reason: store.ReasonPermanent})
	f.addOrdered(store.Closed, ordered("d", due, "k"))
	f.addOrdered(store.Closed, ordered("b", due, "k"))
	f.states(store.StateUnknown, "d", "x", "y")
	f.inOrder()
}

func orderSealedRequeue(f *fixture) {
	f.line("a", "b", "c")
	for _, id := range []string{"a", "b"} {
		f.nack(store.Nack{ID: id, Token: f.hold(id)[0], Reason: store.ReasonPermanent})
	}
	f.dead("plain")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	requeue := func(want store.Status, id string) {
		f.Helper()
		_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{id})
		f.ok("requeue", err)
		f.statuses("requeue of "+id, requeued, want)
	}
	requeue(store.OK, "plain")
	requeue(store.OK, "a") // c is there
	f.inOrder("c", "a")
	for _, id := range []string{"c", "a"} {
		f.ack(0, store.OK, store.Ack{ID: id, Token: f.hold(id)[0]})
	}
	requeue(store.Closed, "b")
	f.states(store.StateDead, "b")
	f.inOrder()
}

// orderKeyed has idempotency keys of tasks with an ordering key: they are of that one only.
func orderKeyed(f *fixture) {
	in := func(id, order string, rule store.KeyConflict) *store.Task {
		t := f.keyed(id, "once", 0, rule)
		t.Due = f.now() - 1
		if order != "" {
			t.Traits = &store.Traits{OrderingKey: order}
		}
		return t
	}
	f.addKeyed(store.Added, "plain", in("plain", "", store.KeyReturn))
	f.addKeyed(store.Added, "a", in("a", "k", store.KeyReturn))
	f.addKeyed(store.Added, "b", in("b", "l", store.KeyReturn))
	f.addKeyed(store.Duplicate, "a", in("c", "k", store.KeyReturn))
	f.addKeyed(store.Taken, "b", in("d", "l", store.KeyReject))
	f.addKeyed(store.Duplicate, "plain", in("e", "", store.KeyReturn))
	equal(f, "stored key", f.get("a").Key.Text, "once")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.addKeyed(store.Duplicate, "a", in("f", "k", store.KeyReturn))
	token := f.hold("a")[0]
	f.addKeyed(store.Passed, "g", in("g", "k", store.KeyReplace))
	f.inOrder("a", "g")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: token})
	f.ack(0, store.OK, store.Ack{ID: "g", Token: f.hold("g")[0]})
	f.addKeyed(store.Closed, "h", in("h", "k", store.KeyReturn))
}

func orderReplaced(f *fixture) {
	f.line("b")
	first := f.keyed("a", "once", 0, store.KeyReplace)
	first.Due, first.Traits = 1, &store.Traits{OrderingKey: "k"}
	f.addKeyed(store.Added, "a", first)
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Delay: time.Minute})
	f.inOrder("a", "b")
	next := f.keyed("c", "once", 0, store.KeyReplace)
	next.Traits = first.Traits
	f.addKeyed(store.Replaced, "a", next)
	f.inOrder("b", "a")
	f.hold("b")
}

func orderDropped(f *fixture) {
	f.line("a", "b")
	f.hold("a")
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	f.inOrder()
	f.line("b")
	f.hold("b")
}

// orderSwept walks a shard with tasks of a key in every state.
func orderSwept(f *fixture) {
	f.line("dead", "done", "running", "waits")
	f.nack(store.Nack{ID: "dead", Token: f.hold("dead")[0], Reason: store.ReasonPermanent})
	f.ack(long, store.OK, store.Ack{ID: "done", Token: f.hold("done")[0]})
	f.hold("running")
	f.add(ordered("retry", 1, "other"), ordered("after", 2, "other"))
	f.nack(store.Nack{ID: "retry", Token: f.hold("retry")[0], Delay: long, Uncount: true})
	for cursor := ""; ; {
		n, next, err := f.s.Sweep(f.ctx, f.shard, f.fence, cursor, 3)
		f.ok("sweep", err)
		equal(f, "repaired", n, 0)
		if cursor = next; cursor == "" {
			break
		}
	}
	f.inOrder("running", "waits")
	same(f, "tasks of the other key", orderOf(f, "other"), []string{"retry", "after"})
}

// orderRivals has many hold and finish the tasks of a few keys at a time.
func orderRivals(f *fixture) {
	const keys, each = 3, 12
	due := f.now() - 1000
	var ids []string
	for k := range keys {
		for i := range each {
			id := fmt.Sprintf("%d-%02d", k, i)
			f.add(ordered(id, due+store.Millis(i), fmt.Sprint(k)))
			ids = append(ids, id)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	had := make(map[byte][]string) // by key, in the order in which they were held
	left := len(ids)
	for range 8 {
		wg.Go(func() {
			for {
				mu.Lock()
				over := left <= 0
				mu.Unlock()
				if over {
					return
				}
				if !f.race(ids, &mu, had, &left) {
					return
				}
			}
		})
	}
	wg.Wait()
	for key, got := range had {
		equal(f, fmt.Sprintf("held in order %v", got), slices.IsSorted(got), true)
		equal(f, "tasks of key "+string(key), len(got), each)
	}
	equal(f, "keys", len(had), keys)
}

// race holds what it gets, and finishes it.
func (f *fixture) race(ids []string, mu *sync.Mutex, had map[byte][]string, left *int) bool {
	for _, id := range ids {
		h := holdsOf(long, id)
		_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, h)
		if err != nil {
			f.Errorf("hold: %v", err)
			mu.Lock()
			*left = 0
			mu.Unlock()
			return false
		}
		if results[0].Status != store.OK {
			continue
		}
		mu.Lock()
		had[id[0]] = append(had[id[0]], id)
		*left--
		mu.Unlock()
		if _, acked, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: id, Token: h[0].Token}}, 0); err != nil || acked[0] != store.OK {
			f.Errorf("ack of %s: %v, %v", id, acked, err)
			mu.Lock()
			*left = 0
			mu.Unlock()
			return false
		}
	}
	return true
}
