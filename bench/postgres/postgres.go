//go:build linux

// Package postgres runs real PostgreSQL servers, each with its files in a directory of its own, on a
// port of loopback. It has no driver: who asks them in Go brings one, others run psql.
package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/bench/port"
)

// Server is a PostgreSQL server. It owns no goroutine, and its process is gone once Stop
// returns.
type Server struct {
	dir  string
	bin  string
	port *port.Claim
	as   *syscall.Credential // nil: whoever runs this
	cmd  *exec.Cmd
}

// Start makes a server and returns when it answers. It syncs nothing to disk.
func Start() (*Server, error) {
	dir, err := os.MkdirTemp("", "ddq-postgres-*")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) start() error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	s.bin = bin
	if s.as, err = unprivileged(s.dir); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if out, err := s.command(bin+"/initdb", "-D", data, "-A", "trust", "-U", "test", "--no-locale", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w:\n%s", err, out)
	}
	if s.port, err = port.New(port.Loopback); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own
	cmd := s.command(bin+"/postgres", "-D", data, "-F", "-h", port.Loopback, "-p", strconv.Itoa(s.port.Number), "-k", "", "-c", "max_connections=200")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	return s.wait()
}

// wait returns when the server answers.
func (s *Server) wait() error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out, err := exec.Command(s.bin+"/psql", "-c", "select", s.URL("postgres")).CombinedOutput()
		switch {
		case err == nil:
			return nil
		case time.Now().After(end):
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres: %w: %s\n%s", err, out, log)
		}
	}
}

// command runs as a user that the server takes, and ends with this process.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// URL is the address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://test@%s/%s?sslmode=disable", s.port.Addr(), database)
}

// Bin is where the programs of this PostgreSQL are, such as psql.
func (s *Server) Bin() string { return s.bin }

// Stop ends the server and removes its files.
func (s *Server) Stop() error {
	var errs []error
	if s.cmd != nil {
		errs = append(errs, s.cmd.Process.Signal(syscall.SIGINT)) // without waiting for clients
		_ = s.cmd.Wait()                                          // the signal is why
	}
	if s.port != nil {
		errs = append(errs, s.port.Release())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// binaries is the directory of the newest PostgreSQL: on PATH, or where Debian keeps what it
// leaves off it.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("postgresql is not installed: run tools/deps.sh tests")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// unprivileged is who runs the server, which refuses to run as root, and gives them dir.
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
	return nil, errors.New("there is no user to run postgresql as: postgres or nobody")
}
