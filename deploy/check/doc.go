// Package check holds the tests of deploy/: that the files there are well formed
// and agree with the server they are for. It is a module of its own, since what
// reads those files is no part of ddq. What Prometheus says of its files is said by
// promtool, which tools/deps.sh installs.
package check
