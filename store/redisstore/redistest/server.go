// Package redistest runs real redis-server processes for tests.
package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a redis-server process of its own, on a unix socket in a directory
// of its own. It is stopped and removed when the test ends.
type Server struct {
	tb     testing.TB
	dir    string
	socket string
	args   []string
	cmd    *exec.Cmd
	output *bytes.Buffer
}

// Start starts a server with an append-only file, synced every second, and waits
// until it answers. More settings are given as redis-server takes them, such as
// "--maxmemory", "64mb", and win over the ones here. The test fails where
// redis-server is not installed.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		tb.Fatal("redis-server is not installed: apt-get install redis-server")
	}
	// Not tb.TempDir: the path of a socket may have about a hundred bytes only.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: dir, socket: filepath.Join(dir, "s")}
	s.args = append([]string{
		path, "--port", "0", "--unixsocket", s.socket, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "everysec", "--enable-debug-command", "local", "--daemonize", "no",
	}, settings...)
	tb.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	s.launch()
	return s
}

// URL is what a client connects to.
func (s *Server) URL() string { return "unix://" + s.socket }

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Pid is the process id of the server.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Kill ends the process without warning (SIGKILL) and waits until it is gone.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGCONT) // a paused process too
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

// Restart kills the process, starts another on the same files and waits until
// it answers.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	s.launch()
}

// Pause stops the process where it is (SIGSTOP) until Resume.
func (s *Server) Pause() { s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.cmd.Process.Signal(syscall.SIGCONT) }

func (s *Server) launch() {
	s.tb.Helper()
	os.Remove(s.socket)
	s.output = new(bytes.Buffer)
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatalf("start redis-server: %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		err := s.ping()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Kill() // so that nothing writes to output any more
			s.tb.Fatalf("redis-server does not answer: %v\n%s", err, s.output)
		}
	}
}

// ping asks whether the server is up and has loaded its files.
func (s *Server) ping() error {
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	if answer := strings.TrimSpace(string(reply[:n])); answer != "+PONG" {
		return fmt.Errorf("answer to ping: %s", answer)
	}
	return nil
}
