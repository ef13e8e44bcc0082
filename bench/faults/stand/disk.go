package stand

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ddq-io/ddq/bench/box"
)

// The kinds of disks.
const (
	noDisk    = ""
	PlainDisk = "tmpfs"
	ImageDisk = "image" // ext4 in a file in memory, so that what was synced can be told
)

// Disk is mounted at a directory of the box.
type Disk struct {
	kind string
	dir  string // where it is mounted
	ram  string // where the image is
	file string // the image
	cuts int
}

// newDisk mounts a disk at dir. There are 256 MiB more than the embedded store refuses
// to use up.
func newDisk(b *box.Box, kind, dir string) (*Disk, error) {
	if kind == PlainDisk {
		return (&Disk{kind: kind}).mount(dir, "-t", "tmpfs", "-o", "size=512m", "tmpfs")
	}
	ram, err := b.Mkdir("ram")
	if err != nil {
		return nil, err
	}
	d, err := (&Disk{kind: kind, ram: ram, file: filepath.Join(ram, "disk0")}).mount(ram, "-t", "tmpfs", "-o", "size=2g", "tmpfs")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(command("truncate", "-s", "768M", d.file), command("mkfs.ext4", "-q", "-F", d.file)); err != nil {
		return d, err
	}
	return d.mount(dir, "-o", "loop", d.file)
}

// mount mounts something at dir. Where that is not permitted there are no disks to break.
func (d *Disk) mount(dir string, what ...string) (*Disk, error) {
	if err := command("mount", append(what, dir)...); err != nil {
		return d, fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	d.dir = dir
	return d, nil
}

// Snapshot copies what a power cut would leave now.
func (d *Disk) Snapshot() (string, error) {
	d.cuts++
	file := filepath.Join(d.ram, fmt.Sprint("disk", d.cuts))
	return file, command("cp", "--sparse=always", d.file, file)
}

// Replace mounts another image instead.
func (d *Disk) Replace(file string) error {
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

func (d *Disk) close() error {
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

// Fill writes until there is no room.
func (d *Disk) Fill() (string, error) {
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
