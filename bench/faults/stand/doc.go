// Package stand is the system under test: nodes, the store behind them, and what can be broken
// of what they run on.
//
//	Stand ── Nodes ── Relay ──▶ Store: in the node, one Redis, Sentinel, Cluster
//	  ├── Net    a namespace for each place, and cables between them
//	  ├── Disk   of the store: in memory, and what was synced can be told
//	  └── clocks of the store and of each node
//
// It starts processes, breaks them when told to, and says when all is well. It knows neither
// tasks nor rounds, and draws no lots: who breaks what, and when, is for package faults.
package stand
