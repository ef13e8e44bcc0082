//go:build linux || darwin || freebsd

package cli

import "golang.org/x/sys/unix"

// writable reports whether this user may make files in dir.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// freeSpace is what this user may still write to the file system of dir.
func freeSpace(dir string) (bytes int64, known bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true
}
