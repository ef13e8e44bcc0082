package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/ddq-io/ddq/bench/box"
)

// postgresServer is a database of the harness's own, with its defaults.
type postgresServer struct {
	url     string
	process *box.Process
}

// startPostgres makes a database in the box and waits until it answers.
func startPostgres(ctx context.Context, b *box.Box) (*postgresServer, error) {
	initdb, err := findPostgres("initdb")
	if err != nil {
		return nil, err
	}
	server, err := findPostgres("postgres")
	if err != nil {
		return nil, err
	}
	dir, err := b.Mkdir("postgres")
	if err != nil {
		return nil, err
	}
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run(initdb, "-D", data, "-A", "trust", "-U", "bench", "--no-locale", "-E", "UTF8").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w:\n%s", err, out)
	}
	addr, err := b.Addr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	p, err := b.Start("postgres-server", run(server, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", ""))
	if err != nil {
		return nil, err
	}
	s := &postgresServer{"postgres://bench@" + addr + "/postgres?sslmode=disable", p}
	return s, p.WaitReady(ctx, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, s.url)
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
}

// findPostgres looks on PATH and where Debian keeps what it leaves off it; the
// newest version wins.
func findPostgres(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", fmt.Errorf("postgresql (%s) is %w", name, box.ErrMissing)
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}

// unprivileged is who runs the database, which refuses to run as root; it is
// given dir. Without root it is nil: whoever runs the bench.
func unprivileged(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr, os.Chown(dir, int(uid), int(gid))); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("a user to run postgresql as, postgres or nobody, is %w", box.ErrMissing)
}
