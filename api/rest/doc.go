// Package rest is the HTTP edge of a node: the gRPC services in JSON over HTTP/1.1, for
// clients that have no gRPC. It is a client of the server within the process, and has no
// rules of its own: what is checked here is what only HTTP knows.
//
//	port      what is served, the routes of others included
//	guard     before every route: names of hosts, pages of other origins, headers, request
//	          ids, panics
//	api       the routes of /v1
//	  routes    which request is which call, read from the protos; who may make it
//	  template  which path is which route
//	  request   what is checked before a call: types, bodies, queries, headers that stand for fields
//	  decode    strict JSON, and where in a body an error is
//	  answer    status codes, entity tags, links
//	  gateway   generated: requests to messages, messages to JSON; transcoding stands before it
//	problem   errors as RFC 9457 says, made in one place
//
// docs/rest.md describes the wire.
package rest
