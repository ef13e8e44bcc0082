// Package access knows the tokens of a fleet, and tells from a credential who calls.
//
//	registry of the store ──▶ Access: tokens by id ──▶ Session of a caller
//	           ▲                  │
//	   make, rotate, revoke       └─ each second: has the registry changed?
//
// A token that is made counts everywhere at once, since one that is not known is looked for.
// One that is revoked, or whose end comes, ends within two seconds, with the streams that it
// opened. When the store is away, tokens that are known go on for ten minutes; others are
// told to come back, and never let in.
package access
