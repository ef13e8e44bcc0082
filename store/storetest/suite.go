package storetest

import (
	"slices"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// Case is one thing that the contract promises.
type Case struct {
	Name string
	// Run checks it on an empty store, which it may close.
	Run func(t *testing.T, s store.Store)
}

// Run runs every case as a subtest, each on a store of its own. open must
// return an empty store and register its cleanup with t.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, open(t)) })
	}
}

// Cases returns every case, in the order of the contract.
func Cases() []Case {
	var all []Case
	for _, group := range [][]entry{
		addCases(), holdCases(), aheadCases(), settleCases(), recoverCases(), changeCases(), editCases(), lifeCases(), deadCases(), trimDeadCases(), keyedCases(), orderCases(),
		ownCases(), windowCases(), laneCases(), histogramCases(), listCases(), statsCases(), seqCases(), roundTripCases(),
		isolationCases(), limitCases(), takeCases(), attributeCases(), sealCases(), shardLifeCases(), historyCases(), journalCases(), logCases(), catalogCases(), lifecycleCases(), concurrencyCases(),
	} {
		for _, e := range group {
			all = append(all, Case{Name: e.name, Run: func(t *testing.T, s store.Store) {
				t.Helper()
				e.run(newFixture(t, s))
			}})
		}
	}
	return slices.Clip(all)
}

// entry is a case as the groups write it down.
type entry struct {
	name string
	run  func(f *fixture)
}
