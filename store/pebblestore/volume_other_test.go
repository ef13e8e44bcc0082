//go:build !linux

package pebblestore

import "testing"

func smallVolume(t *testing.T, _ int) string {
	t.Skip("mounts a file system, which is done on Linux only")
	return ""
}
