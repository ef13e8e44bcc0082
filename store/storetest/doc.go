// Package storetest is the executable meaning of the store contract: every
// store passes Run, which goes through what each method promises, and
// RunProperty, which compares the store with memstore on random histories.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return openStore(t) })
//	}
//
// Every case opens a store of its own through open, which registers its
// cleanup. Cases are also available one by one from Cases, for stores that can
// run inside a synctest bubble, where subtests are not allowed.
//
// Where the contract leaves room, the cases do too: a moment that a store
// derives from its clock may be off by a millisecond of rounding, and pages of
// running tasks may come in any order. Cases never wait for an amount of time,
// only until the store's own clock has passed a moment, so they hold on a busy
// machine and in fake time alike.
package storetest
