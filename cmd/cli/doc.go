// Package cli is the command line of ddq: a file for each command, a type for each group
// of them, and the run that they share.
//
//	main ─▶ Run ─▶ root ─▶ a command ─▶ client, worker ─▶ a server somewhere
//	                          │
//	                          └─▶ node: server and demo start one, doctor checks one
//
// Results go to stdout, as a table or, with -o json, as one object a line; everything
// else goes to stderr. The exit code is 0, 1 when something failed, and 2 for wrong
// usage, which a configuration that cannot work is too.
//
// Scripts depend on flags, on names and formats in JSON, and on exit codes.
package cli
