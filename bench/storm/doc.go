// Package storm edits tasks at the instant at which they are delivered.
//
// Many tasks are due at one instant. Editors update, move, promote and delete those that
// are being delivered just then, while a worker takes them, and not faster than the
// editors get on. Every answer has to be exactly one of changed, already delivered and
// gone; and all of them, with what the worker had on the wire, are put before the checker of
// package ledger, which knows what follows from what: an edit that was accepted is in
// the delivery that follows it, and in none before.
package storm
