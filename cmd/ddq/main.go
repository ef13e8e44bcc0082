// Command ddq is the delay queue: the server, and every command that talks to
// one. `ddq help` lists them.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // schedules name time zones, and a machine or a container may have none

	"github.com/ddq-io/ddq/cmd/cli"
	"github.com/ddq-io/ddq/cmd/cli/shell"
)

// gcPercent trades memory for processor time: what ddq allocates lives for
// milliseconds, and its live heap is small, so collecting at twice the heap would
// take a tenth of the processor. GOGC overrides it.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := context.WithCancel(context.Background())
	var abort shell.Abort
	go obey(stop, &abort)
	code := cli.Run(ctx, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Abort: &abort}, os.Args[1:])
	stop()
	os.Exit(code)
}

// obey stops the command at the first signal, and ends the process at the second. It does
// not leave that to the default action, which a shell without job control has set to
// ignore for what it starts in the background.
func obey(stop context.CancelFunc, abort *shell.Abort) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	stop()
	sig := <-signals
	abort.Now()
	code := 128
	if n, ok := sig.(syscall.Signal); ok {
		code += int(n) // as a shell reports it
	}
	os.Exit(code)
}
