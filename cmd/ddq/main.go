// Command ddq is the delay queue: the server, and every command that talks to
// one. `ddq help` lists them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, streams{os.Stdin, os.Stdout, os.Stderr, os.Environ()}, os.Args[1:])
	stop()
	os.Exit(code)
}
