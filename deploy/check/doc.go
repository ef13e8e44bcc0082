// Package check holds the tests of deploy/: that the files there are well formed
// and agree with the server they are for. It is a module of its own, since the
// libraries that read those files are many times the size of ddq.
package check
