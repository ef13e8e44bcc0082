// Package metrics is what a node counts, and the store as it measures it: the calls of the
// hot path are timed, and the clocks learn from their stamps.
package metrics
