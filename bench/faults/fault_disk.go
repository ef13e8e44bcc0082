package faults

import (
	"context"
	"os"
	"time"

	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger/checker"
)

// diskFaults are those of the disk that the store is on. It is one of its own, in
// memory.
func diskFaults() []Fault {
	return []Fault{
		{
			Name: "disk-full", What: "the disk of the embedded store is filled to the last byte, then freed, and the node restarted",
			Stores: []string{stand.Embedded}, Mounts: true, strike: fillDisk, once: true,
			tune: func(s *setting) { s.system.Disk = stand.PlainDisk },
			Cost: "no service while it is full; what is asked is refused, or may have been done; the node needs a restart when its log could not be written",
		},
		{
			Name: "powercut", What: "the disk is set back to what was synced at one instant, and everything on it killed",
			Stores: []string{stand.Embedded, stand.RedisAlways}, Mounts: true, strike: cutPower,
			tune: func(s *setting) { s.system.Disk = stand.ImageDisk },
			Cost: "no service until it is back",
		},
		{
			Name: "powercut-everysec", What: "the same with appendfsync everysec",
			Stores: []string{stand.RedisEverysec}, Mounts: true, strike: cutPower,
			tune:  func(s *setting) { s.system.Disk = stand.ImageDisk },
			Cost:  "the same; and what was answered in the two seconds before may be undone: tasks lost, settled ones back",
			Allow: []checker.Allowance{{Fault: "powercut-everysec", Before: 2 * time.Second}},
		},
	}
}

func fillDisk(ctx context.Context, r *round) error {
	nd := r.Nodes[0]
	return r.broken(ctx, "fill the disk", func() error {
		filler, err := r.Disk.Fill()
		if err != nil {
			return err
		}
		if err := r.pause(ctx, time.Second, 2*time.Second); err != nil {
			return err
		}
		if err := os.Remove(filler); err != nil {
			return err
		}
		if err := nd.Kill(); err != nil {
			return err
		}
		return r.revive(ctx, nd)
	})
}

func cutPower(ctx context.Context, r *round) error {
	victim := r.Nodes[0].Process
	if redis, ok := r.Store.(*stand.Redis); ok {
		victim = redis.Process
	}
	return r.broken(ctx, "cut the power", func() error {
		if err := victim.Pause(); err != nil {
			return err
		}
		left, err := r.Disk.Snapshot()
		if err != nil {
			return err
		}
		if err := victim.Kill(); err != nil {
			return err
		}
		if err := r.Disk.Replace(left); err != nil {
			return err
		}
		if err := victim.Revive(); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}
