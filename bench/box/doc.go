// Package box starts processes, with a directory and ports of their own, measures them, and leaves
// nothing of them behind: servers, workers and databases of the harness.
//
// CPU and memory are read from /proc, so on other systems than Linux they are zero.
package box
