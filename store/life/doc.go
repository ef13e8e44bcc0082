// Package life has the rules of a task's life, once: what becomes of a task when it is
// asked for, settled, edited or added again. It decides and does nothing. The stores
// that are written in Go ask it and carry out what it says; the scripts of the other
// one are held to it by the conformance suite.
//
// The sessions of nodes, under which they own shards, last by one rule, too.
//
// A verdict takes the little that a rule depends on, so that nothing is read or copied
// for it. It has no clock: the present moment is an argument.
package life
