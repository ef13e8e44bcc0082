// Package oidc tells from a token of an issuer, which is a signed JWT, whose it is.
//
//	https issuer ──▶ keys: discovery, key set ──▶ Issuers.Verify: signature, audience, times
//	                   ▲
//	                   └─ every ten minutes, and for a key that is not known, at most
//	                      once in half a minute
//
// While an issuer is away the keys that are known count for a day. A token that needs another one
// is told to come back, and never let in. No key is taken from a token, and no address in one
// is asked.
package oidc
