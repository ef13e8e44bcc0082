// Package conn makes connections to ddq servers: to one, or to the nodes of a fleet in
// turn. It knows addresses, credentials and settings of gRPC, and no calls.
package conn
