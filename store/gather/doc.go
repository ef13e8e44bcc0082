// Package gather makes one call of the store of several that are made at one time, as a
// database makes one sync of the commits that wait for it.
package gather
