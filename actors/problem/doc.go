// Package problem has the errors that callers act on: a kind, a reason that is a part of
// the protocol, and the field that it is about. The edge translates them once.
package problem
