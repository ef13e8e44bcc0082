// Package ledger is what the clients of a run write down: one file a client, one line an Event.
// A Writer appends them, and ReadFile reads them back. What is made of them is package checker's:
// it and the clients share these records and nothing else.
package ledger
