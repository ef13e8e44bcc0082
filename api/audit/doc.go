// Package audit writes down what administrators do: who asked for what, before it is done, and
// what came of it. Records are lines of JSON in a file that only grows. Each has the hash of the
// one before and its own, so that a line that was changed, moved or taken out is found.
package audit
