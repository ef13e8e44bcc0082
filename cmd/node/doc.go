// Package node is one server as a value: its configuration, and everything that Start
// opens and Stop closes.
//
//	       Config ─▶ Start
//	                   │
//	store by URL, fleet, metrics and health ports
//	                   │
//	             actors.Node
//	                   │
//	            gRPC server, port
//
// The parts start from the top down and stop the other way round, so that what goes
// wrong later can be seen, and workers settle while the gRPC port drains. Nothing here
// decides anything: rules of the queue are in actors, of the wire in api/server.
//
// `ddq server` is Serve; demo, tests and whoever needs a server in the same process
// use Start and Stop. Port 0 takes a free port.
package node
