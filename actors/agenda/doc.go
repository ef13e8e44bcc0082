// Package agenda is what a shard knows of its part of the store: how far it has read
// ahead, lanes, ordering keys, holds, acks, and which notices it missed. All of it is a
// hint, and the store decides. The rules take the time as an argument; the shard's actor
// owns them and makes the store calls.
package agenda
