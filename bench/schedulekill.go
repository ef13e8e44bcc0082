package bench

import (
	"context"
	"errors"
	"fmt"
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
	n := 2
	if o.Store == "embedded" {
		n = 1
	}
	fleet, err := testbed.StartFleet(ctx, n, o.ServerBin, o.Store, b)
	if err != nil {
		return err
	}
	c, err := client.Dial(fleet.Addrs(), client.Config{Timeout: adminTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	show := &scheduleShow{scheduleOptions: o, server: fleet[0], disk: fleet[0].Disk, client: c, servers: fleet.Processes()}
	show.strike = func() error {
		fmt.Fprintf(o.Log, "schedules: the first of %d servers is killed\n", n)
		return fleet.Kill(ctx)
	}
	line.Standing = 0
	return show.each(ctx, partKilled, line)
}

// struck has a server killed in the middle of a time, and measures what everybody uses over it.
func (s *scheduleShow) struck(ctx context.Context, line *scheduleLine, d time.Duration) error {
	end, before := time.Now().Add(d), s.usage()
	if err := testbed.Pause(ctx, d/2); err != nil {
		return err
	}
	if err := s.strike(); err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	if err := testbed.Pause(ctx, time.Until(end)); err != nil {
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
