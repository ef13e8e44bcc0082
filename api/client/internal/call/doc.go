// Package call has what the groups of calls of a client share: the answer to one call, and the
// pages of a list.
package call
