// Package access has what operators ask of a server about who may call it: who the caller is,
// tokens, and bindings of certificates and of tokens of other issuers.
package access
