package actors_test

import "testing"

// dose is n, or with -short a quarter of it, which is what `make race` has time for. A race shows
// where goroutines meet, not in how many rounds they do.
func dose(n int) int {
	if testing.Short() {
		return max(1, n/4)
	}
	return n
}

// skipLong leaves out what is long with the race detector and meets in no other way than others do.
func skipLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long with the race detector: make race-all plays it")
	}
}
