package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/box"
)

// Fleet is servers that share a store, the first of which opened it.
type Fleet []*Server

// Shared reports whether several servers can have a store of the bench's own.
func Shared(store string) bool {
	return store == "redis" || store == "redis-everysec" || store == "redis-always"
}

// StartFleet opens a store and starts n servers on it, which know one another when there are several,
// with flags besides.
func StartFleet(ctx context.Context, n int, bin, store string, b *box.Box, flags ...string) (Fleet, error) {
	fleet := Fleet{{}}
	flag, err := fleet[0].OpenStore(ctx, store, b)
	if err != nil {
		return nil, err
	}
	gossip := make([]string, n)
	for i := range gossip {
		if gossip[i], err = b.Addr(); err != nil {
			return nil, err
		}
	}
	for i := range n {
		if i > 0 {
			fleet = append(fleet, &Server{Name: fmt.Sprint("server-", i)})
		}
		own := slices.Clone(flags)
		if n > 1 {
			own = append(own, "--node-name", fmt.Sprint("n", i), "--gossip-addr", gossip[i], "--join", gossip[0])
		}
		if err := fleet[i].Start(ctx, bin, flag, b, own...); err != nil {
			return nil, err
		}
	}
	return fleet, nil
}

// Addrs are where they serve, as a client dials them.
func (f Fleet) Addrs() string {
	addrs := make([]string, len(f))
	for i, s := range f {
		addrs[i] = s.GRPCAddr
	}
	return strings.Join(addrs, ",")
}

// Processes are theirs, without the store.
func (f Fleet) Processes() []*box.Process {
	all := make([]*box.Process, len(f))
	for i, s := range f {
		all[i] = s.Process
	}
	return all
}

// Kill kills the first server as kill -9 does. The only one is started again at once; one of several
// stays dead until Revive.
func (f Fleet) Kill(ctx context.Context) error {
	if err := f[0].Process.Kill(); err != nil || len(f) > 1 {
		return err
	}
	return f.Revive(ctx)
}

// Revive starts the first server again where it is dead, and waits until it serves.
func (f Fleet) Revive(ctx context.Context) error {
	if f[0].Process.Running() {
		return nil
	}
	if err := f[0].Process.Revive(); err != nil {
		return err
	}
	return f[0].WaitReady(ctx)
}
