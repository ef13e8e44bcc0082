// Package access knows the tokens of a fleet, and tells from a credential who calls.
//
//	registry of the store ──▶ Tokens, Bindings, Logins ──▶ Session of a caller
//	           ▲                  │
//	   make, rotate, revoke       └─ each second: has the registry changed?
//
// A token that is made counts everywhere at once, since one that is not known is looked for.
// One that is revoked, or whose end comes, ends within two seconds, with the streams that it
// opened. When the store is away, tokens that are known go on for ten minutes; others are
// told to come back, and never let in.
//
// Browsers have logins: a token is exchanged for a key, and the record of the login is under the
// hash of that key. A login counts as long as its token does, and no longer than half a day.
package access
