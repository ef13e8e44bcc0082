package storetest

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
)

func shardLifeCases() []entry {
	return []entry{
		{"ShardLife/FirstTopicHasIt", lifeFirst},
		{"ShardLife/DroppedTakesNothing", lifeDropped},
		{"ShardLife/OpensForAnotherTopic", lifeOpens},
		{"ShardLife/OpensAgainForItsOwn", lifeOpensAgain},
		{"ShardLife/OpenComparesTheRecord", lifeCompares},
		{"ShardLife/OpenUnsealsWhatWasAnothers", lifeUnseals},
		{"ShardLife/OtherTopicsSealAndDropNothing", lifeOthers},
		{"ShardLife/SealedByTheNextTopic", lifeSealedNext},
	}
}

// ended and living are records of a shard.
func ended(life uint64) store.ShardLife  { return store.ShardLife{Topic: life, Ended: true} }
func living(life uint64) store.ShardLife { return store.ShardLife{Topic: life} }

// takes checks that the shard takes tasks of a topic by every call that adds some.
func (f *fixture) takes(life uint64) {
	f.Helper()
	f.adding(life, nil)
}

// refuses is the opposite of takes.
func (f *fixture) refuses(life uint64) {
	f.Helper()
	f.adding(life, store.ErrSealed)
}

func (f *fixture) adding(life uint64, want error) {
	f.Helper()
	before, shard := f.stats(), f.shard.For(life)
	id := func(what string) string { return fmt.Sprintf("%s-%x", what, store.NewToken()) }
	keyed := f.keyed(id("keyed"), id("key"), long, store.KeyReturn)
	keyed.Due = f.now().Add(long)
	_, _, err := f.s.Add(f.ctx, shard, tasks(f.now().Add(long), id("added")))
	f.refused("add", err, want)
	_, _, err = f.s.AddKeyed(f.ctx, shard, []*store.Task{keyed})
	f.refused("add keyed", err, want)
	_, _, err = f.s.HoldNew(f.ctx, shard, f.fence, tasks(f.now().Add(long), id("held")), holdsOf(long, ""))
	f.refused("hold new", err, want)
	added := int64(3)
	if want != nil {
		added = 0
	}
	equal(f, "tasks added", f.stats().Pending-before.Pending, added)
}

// sealedFor checks that the shard is the topic's, and sealed.
func (f *fixture) sealedFor(life uint64) {
	f.Helper()
	equal(f, "life of the shard", f.stats().Life, living(life))
	_, _, err := f.s.Add(f.ctx, f.shard.For(life), tasks(f.now(), "late"))
	f.refused("add", err, store.ErrSealed)
}

func (f *fixture) drop(life uint64) {
	f.Helper()
	f.ok("drop", f.s.DropShard(f.ctx, f.shard.For(life)))
}

// open opens the shard for a topic whose node has read was, and checks the record.
func (f *fixture) open(life uint64, was, want store.ShardLife) {
	f.Helper()
	f.ok("open", f.s.OpenShard(f.ctx, f.shard.For(life), was))
	equal(f, "life of the shard", f.stats().Life, want)
}

func lifeFirst(f *fixture) {
	equal(f, "life of a fresh shard", f.stats().Life, store.ShardLife{})
	f.takes(0)
	equal(f, "life after tasks of nobody", f.stats().Life, store.ShardLife{})
	f.takes(7)
	equal(f, "life", f.stats().Life, living(7))
	f.refuses(8)
	f.takes(7)
	f.takes(0)
}

func lifeDropped(f *fixture) {
	f.takes(7)
	f.drop(7)
	equal(f, "life", f.stats().Life, ended(7))
	equal(f, "tasks", f.stats().Pending, 0)
	f.refuses(7)
	f.refuses(8)
	f.drop(7)
	equal(f, "life", f.stats().Life, ended(7))
	never := store.Shard{Topic: "never", N: 3}
	f.ok("drop of a shard that was never used", f.s.DropShard(f.ctx, never.For(7)))
	_, _, err := f.s.Add(f.ctx, never.For(7), tasks(f.now(), "a"))
	f.refused("add to it", err, store.ErrSealed)
}

func lifeOpens(f *fixture) {
	f.takes(7)
	f.drop(7)
	f.open(1<<64-1, ended(7), living(1<<64-1))
	f.takes(1<<64 - 1)
	f.refuses(7)
	f.open(9, living(1<<64-1), living(9)) // its deletion broke off
	equal(f, "tasks that were there", f.stats().Pending, 3)
	f.takes(9)
	f.open(9, living(9), living(9))
	f.open(0, living(9), living(9))
}

func lifeOpensAgain(f *fixture) {
	f.takes(7)
	f.drop(7)
	f.open(7, ended(7), living(7))
	f.takes(7)
}

func lifeCompares(f *fixture) {
	f.takes(7)
	f.drop(7)
	f.open(8, living(7), ended(7))
	f.open(8, store.ShardLife{}, ended(7))
	f.open(8, ended(6), ended(7))
	f.refuses(8)
	f.open(8, ended(7), living(8))
	f.open(7, ended(7), living(8))
	f.takes(8)
}

func lifeUnseals(f *fixture) {
	f.takes(7)
	f.ok("seal", f.s.Seal(f.ctx, f.shard.For(7)))
	f.sealedFor(7)
	f.open(8, living(7), living(8))
	f.takes(8)

	f.shard = store.Shard{Topic: "old", N: 1}
	f.ok("seal of nobody's shard", f.s.Seal(f.ctx, f.shard))
	f.open(8, store.ShardLife{}, living(8))
	f.sealedFor(8)
}

func lifeOthers(f *fixture) {
	f.takes(7)
	f.drop(8)
	f.ok("seal", f.s.Seal(f.ctx, f.shard.For(8)))
	equal(f, "life", f.stats().Life, living(7))
	equal(f, "tasks", f.stats().Pending, 3)
	f.takes(7)
}

func lifeSealedNext(f *fixture) {
	f.takes(7)
	f.drop(7)
	f.ok("seal", f.s.Seal(f.ctx, f.shard.For(8)))
	equal(f, "life", f.stats().Life, living(8))
	f.ok("seal", f.s.Seal(f.ctx, f.shard.For(8)))
	f.open(8, ended(7), living(8)) // by a node that read it before
	f.sealedFor(8)
	f.drop(8)
	equal(f, "life", f.stats().Life, ended(8))
	f.ok("seal of what is over", f.s.Seal(f.ctx, f.shard.For(8)))
	f.refuses(8)
}
