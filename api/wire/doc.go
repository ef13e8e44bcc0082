// Package wire is where tasks of the protocol become tasks of the store, and back: one
// list of their fields for the server, which translates requests, and for the peer client,
// which gets tasks that another node holds. Beside tasks it has what they are made of:
// times, durations, text, backoffs, traits.
package wire
