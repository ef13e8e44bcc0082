//go:build !unix

package cli

import "os/exec"

// Without process groups only the shell itself is ended, which is what
// exec.CommandContext does.
func inOwnGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
