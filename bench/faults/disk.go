package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/ledger"
)

// diskFaults are those of the disk that the store is on. It is one of its own, in
// memory.
func diskFaults() []Fault {
	return []Fault{
		{
			Name: "disk-full", What: "the disk of the embedded store is filled to the last byte, then freed, and the node restarted",
			Stores: []string{embedded}, Mounts: true, strike: fillDisk, once: true,
			tune: func(s *setting) { s.onDisk = plainDisk },
			Cost: "no service while it is full; what is asked is refused, or may have been done; the node needs a restart when its log could not be written",
		},
		{
			Name: "powercut", What: "the disk is set back to what was synced at one instant, and everything on it killed",
			Stores: []string{embedded, redisAlways}, Mounts: true, strike: cutPower,
			tune: func(s *setting) { s.onDisk = imageDisk },
			Cost: "no service until it is back",
		},
		{
			Name: "powercut-everysec", What: "the same with appendfsync everysec",
			Stores: []string{redisEverysec}, Mounts: true, strike: cutPower,
			tune:  func(s *setting) { s.onDisk = imageDisk },
			Cost:  "the same; and what was answered in the two seconds before may be undone: tasks lost, settled ones back",
			Allow: []ledger.Allowance{{Fault: "powercut-everysec", Before: 2 * time.Second}},
		},
	}
}

// The kinds of disks.
const (
	noDisk    = ""
	plainDisk = "tmpfs"
	imageDisk = "image" // ext4 in a file in memory, so that what was synced can be told
)

// disk is mounted at a directory of the box.
type disk struct {
	kind string
	dir  string // where it is mounted
	ram  string // where the image is
	file string // the image
	cuts int
}

// newDisk mounts a disk at dir. There are 256 MiB more than the embedded store refuses
// to use up.
func newDisk(box *bench.Box, kind, dir string) (*disk, error) {
	if kind == plainDisk {
		return (&disk{kind: kind}).mount(dir, "-t", "tmpfs", "-o", "size=512m", "tmpfs")
	}
	ram, err := box.Mkdir("ram")
	if err != nil {
		return nil, err
	}
	d, err := (&disk{kind: kind, ram: ram, file: filepath.Join(ram, "disk0")}).mount(ram, "-t", "tmpfs", "-o", "size=2g", "tmpfs")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(command("truncate", "-s", "768M", d.file), command("mkfs.ext4", "-q", "-F", d.file)); err != nil {
		return d, err
	}
	return d.mount(dir, "-o", "loop", d.file)
}

// mount mounts something at dir. Where that is not permitted there are no disks to break.
func (d *disk) mount(dir string, what ...string) (*disk, error) {
	if err := command("mount", append(what, dir)...); err != nil {
		return d, fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	d.dir = dir
	return d, nil
}

// snapshot copies what a power cut would leave now.
func (d *disk) snapshot() (string, error) {
	d.cuts++
	file := filepath.Join(d.ram, fmt.Sprint("disk", d.cuts))
	return file, command("cp", "--sparse=always", d.file, file)
}

// replace mounts another image instead.
func (d *disk) replace(file string) error {
	if err := command("umount", d.dir); err != nil {
		return err
	}
	if err := os.Remove(d.file); err != nil {
		return err
	}
	d.file = file
	_, err := d.mount(d.dir, "-o", "loop", d.file)
	return err
}

func (d *disk) close() error {
	if d == nil || d.dir == "" {
		return nil
	}
	// A loop device lets go of its file a moment after it was unmounted: the kernel
	// is to see to the rest.
	err := command("umount", "--lazy", d.dir)
	if d.ram != "" && d.ram != d.dir {
		err = errors.Join(err, command("umount", "--lazy", d.ram))
	}
	return err
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

// fill writes until there is no room.
func (d *disk) fill() (string, error) {
	path := filepath.Join(d.dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2] // to the last byte
		}
	}
	return path, nil
}

func fillDisk(ctx context.Context, r *round) error {
	nd := r.nodes[0]
	return r.broken(ctx, "fill the disk", func() error {
		filler, err := r.disk.fill()
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
	victim := r.nodes[0].Process
	if redis, ok := r.store.(*oneRedis); ok {
		victim = redis.Process
	}
	return r.broken(ctx, "cut the power", func() error {
		if err := victim.Pause(); err != nil {
			return err
		}
		left, err := r.disk.snapshot()
		if err != nil {
			return err
		}
		if err := victim.Kill(); err != nil {
			return err
		}
		if err := r.disk.replace(left); err != nil {
			return err
		}
		if err := victim.Revive(); err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}
