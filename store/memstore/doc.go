// Package memstore keeps tasks in memory, for tests in fake time and for users'
// tests. It keeps the whole store contract except durability: what it holds is
// gone with the process.
//
// One mutex guards everything, so every call is atomic as a whole. There are no
// goroutines, and the clock is plain time.Now, which in a synctest bubble is the
// bubble's: make the store inside the bubble that uses it.
//
// Tasks are copied on the way in and on the way out. Pending tasks lie in a
// B-tree by due time and id, so a hundred thousand of them cost no more than a
// lookup each.
package memstore
