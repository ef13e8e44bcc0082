// Command ddq is the delay queue: the server, and every command that talks to
// one. `ddq help` lists them.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/ddq-io/ddq/cmd/cli"
)

// gcPercent trades memory for processor time: what ddq allocates lives for
// milliseconds, and its live heap is small, so collecting at twice the heap would
// take a tenth of the processor. GOGC overrides it.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := cli.Run(ctx, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}, os.Args[1:])
	stop()
	os.Exit(code)
}
