// Package redistest runs real redis-server processes for tests, and for rounds of
// faults.
package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/bench/port"
)

// TB is what this package needs of a testing.TB. Fatal and Fatalf must not return.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Server is a redis-server process of its own, on a unix socket in a directory
// of its own. It is stopped and removed when the test ends. It owns a goroutine
// while the process runs.
type Server struct {
	tb     TB
	dir    string
	socket string
	addr   string // empty: the socket only
	args   []string
	cmd    *exec.Cmd // nil: not running
	paused bool
	gone   chan struct{} // closed when the process has ended
}

// Start starts a server with an append-only file, synced every second, and waits
// until it answers. More settings are given as redis-server takes them, such as
// "--maxmemory", "64mb", and win over the ones here. The test fails where
// redis-server is not installed.
func Start(tb TB, settings ...string) *Server {
	tb.Helper()
	return StartBehind(tb, nil, settings...)
}

// StartBehind is Start with a command that is to run the server, such as one that
// enters a network namespace. It must become the server's process.
func StartBehind(tb TB, command []string, settings ...string) *Server {
	tb.Helper()
	s := newServer(tb)
	s.args = append(slices.Clone(command), s.args...)
	s.start(append([]string{
		"--port", "0", "--unixsocket", s.socket, "--dir", s.dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "everysec", "--enable-debug-command", "local", "--daemonize", "no",
	}, settings...))
	return s
}

// Loopback is where servers listen that are not told otherwise.
const Loopback = port.Loopback

// StartTCP starts a server that also listens on a port of loopback.
func StartTCP(tb TB, settings ...string) *Server {
	tb.Helper()
	return startTCP(tb, Loopback, settings...)
}

// startTCP starts a server that also listens on a port of an address of this machine.
func startTCP(tb TB, host string, settings ...string) *Server {
	tb.Helper()
	number := claimPort(tb, host)
	s := Start(tb, append([]string{"--bind", host, "--port", number, "--protected-mode", "no", "--repl-diskless-sync-delay", "0"}, settings...)...)
	s.addr = net.JoinHostPort(host, number)
	return s
}

// StartReplica starts a server that follows another one of StartTCP, and waits
// until that one hears from it: a replica is online up to a second before.
func StartReplica(tb TB, primary *Server) *Server {
	tb.Helper()
	host, port, _ := net.SplitHostPort(primary.addr)
	s := startTCP(tb, host, "--replicaof", host+" "+port)
	await(tb, s, "INFO replication", "master_link_status:up")
	awaitAck(tb, primary)
	return s
}

// claimPort returns a port that is for one server until the test ends.
func claimPort(tb TB, host string) string {
	tb.Helper()
	claim, err := port.New(host)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { claim.Release() })
	return strconv.Itoa(claim.Number)
}

// newServer makes the directory of a server that is not running yet.
func newServer(tb TB) *Server {
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
	s := &Server{tb: tb, dir: dir, socket: filepath.Join(dir, "s"), args: []string{path}}
	tb.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	return s
}

func (s *Server) start(args []string) {
	s.tb.Helper()
	s.args = append(s.args, args...)
	s.launch()
}

// URL is what a client connects to.
func (s *Server) URL() string { return "unix://" + s.socket }

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Addr is the host and port of a server that listens on one.
func (s *Server) Addr() string { return s.addr }

// Pid is the process id of the server.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Kill ends the process without warning (SIGKILL) and waits until it is gone.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // with a child that rewrites files
	<-s.gone
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
func (s *Server) Pause() {
	s.paused = true
	s.cmd.Process.Signal(syscall.SIGSTOP)
}

// Resume lets a paused process go on.
func (s *Server) Resume() {
	s.paused = false
	s.cmd.Process.Signal(syscall.SIGCONT)
}

// answers reports whether the process runs.
func (s *Server) answers() bool { return s.cmd != nil && !s.paused }

func (s *Server) launch() {
	s.tb.Helper()
	os.Remove(s.socket)
	if err := s.run(); err != nil {
		s.tb.Fatalf("start redis-server: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		err := s.ping()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			output, _ := os.ReadFile(s.log())
			s.tb.Fatalf("redis-server does not answer: %v\n%s", err, output)
		}
	}
}

// log is the file that the process writes its output to.
func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// run starts the process. The system ends it with the thread that started it, so
// that it does not outlive the test; the thread is kept until then.
func (s *Server) run() error {
	output, err := os.Create(s.log())
	if err != nil {
		return err
	}
	defer output.Close()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started, gone := make(chan error), make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() // its end is always a signal
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.cmd, s.gone, s.paused = cmd, gone, false
	return nil
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
	if answer := strings.TrimSpace(string(reply[:n])); answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH") { // it asks for a password
		return fmt.Errorf("answer to ping: %s", answer)
	}
	return nil
}
