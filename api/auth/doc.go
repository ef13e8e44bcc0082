// Package auth says who calls and what they may do: principals, grants, tokens, and the
// rule of each method. It is pure: it looks at no clock, no store and no network, so every
// answer can be tested.
//
//	credential ──▶ Principal ──▶ Grants.Allow(verbs, namespace, topic)
//	                                  ▲
//	method ──▶ Rule (verbs, where the request has its topics)
//
// What no rule allows is refused. A grant is verbs on the topics of a namespace that match
// a pattern; there are no grants that take something away.
//
// A token is shown once. What is kept of it is a hash, and whoever reads the store cannot
// call with that.
package auth
