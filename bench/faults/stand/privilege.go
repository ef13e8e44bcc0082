package stand

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// ErrPrivilege means that a fault needs what cannot be had here.
var ErrPrivilege = errors.New("takes Linux and root: ip(8) for networks, mount(8) for disks, a C compiler for clocks")

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}
