package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

// killedHold is how long a hold lasts where a server is killed: what was in flight to a worker comes
// again after it.
const killedHold = time.Second

// killed plays steady on servers and a store of its own, of which one server is killed in the middle.
func (o *scheduleOptions) killed(ctx context.Context, line *scheduleLine) (err error) {
	b, err := box.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	servers, err := o.startFleet(ctx, b)
	if err != nil {
		return err
	}
	addrs := make([]string, len(servers))
	processes := make([]*box.Process, len(servers))
	for i, s := range servers {
		addrs[i], processes[i] = s.GRPCAddr, s.Process
	}
	c, err := client.Dial(strings.Join(addrs, ","), client.Config{Timeout: adminTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	show := &scheduleShow{scheduleOptions: o, server: servers[0], disk: servers[0].Disk, client: c, servers: processes}
	show.strike = func() error { return o.kill(ctx, servers) }
	line.Standing = 0
	return show.each(ctx, partKilled, line)
}

// startFleet starts two servers on a Redis, or one on a store that only one can have.
func (o *scheduleOptions) startFleet(ctx context.Context, b *box.Box) (servers []*testbed.Server, err error) {
	first := &testbed.Server{}
	store, err := first.OpenStore(ctx, o.Store, b)
	if err != nil {
		return nil, err
	}
	if o.Store == "embedded" {
		return []*testbed.Server{first}, first.Start(ctx, o.ServerBin, store, b)
	}
	gossip := make([]string, 2)
	for i := range gossip {
		if gossip[i], err = b.Addr(); err != nil {
			return nil, err
		}
	}
	servers = []*testbed.Server{first, {Name: "server-1"}}
	for i, s := range servers {
		flags := []string{"--node-name", fmt.Sprint("n", i), "--gossip-addr", gossip[i], "--join", gossip[0]}
		if err := s.Start(ctx, o.ServerBin, store, b, flags...); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// kill kills the first server, and starts it again where it is the only one.
func (o *scheduleOptions) kill(ctx context.Context, servers []*testbed.Server) error {
	if len(servers) > 1 {
		fmt.Fprintln(o.Log, "schedules: one of two servers is killed")
		return servers[0].Process.Kill()
	}
	_, err := servers[0].Restart(ctx, func() { fmt.Fprintln(o.Log, "schedules: the server is killed and started again") })
	if err != nil {
		return err
	}
	return servers[0].WaitReady(ctx)
}

// struck has a server killed in the middle of a time, and measures what everybody uses over it.
func (s *scheduleShow) struck(ctx context.Context, line *scheduleLine, d time.Duration) error {
	end, before := time.Now().Add(d), s.usage()
	if err := pause(ctx, d/2); err != nil {
		return err
	}
	if err := s.strike(); err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	if err := pause(ctx, time.Until(end)); err != nil {
		return err
	}
	used := s.usage().Minus(before)
	line.CPU = &used
	return nil
}

// usage is what every party used up to now.
func (s *scheduleShow) usage() result.Roles {
	return result.Roles{Client: box.OwnCPU(), Server: box.CPU(s.servers), Store: box.CPU(s.disk)}
}
