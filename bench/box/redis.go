package box

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Redis is a redis-server of the harness's own, with an append-only file.
type Redis struct {
	Addr    string
	Version string
	Process *Process
}

// RedisConfig says how a redis-server is started. The zero value works.
type RedisConfig struct {
	Fsync string // of the append-only file: everysec (the default) or always
	Addr  string // to listen on; defaults to one of the box
	Dir   string // where its files are; defaults to one in the box
	// Command makes the command to run; defaults to exec.Command.
	Command func(name string, args ...string) *exec.Cmd
}

// StartRedis starts a redis-server in the box, its append-only file synced
// everysec or always, and waits until it answers.
func StartRedis(ctx context.Context, b *Box, fsync string) (*Redis, error) {
	return RedisConfig{Fsync: fsync}.Start(ctx, b)
}

// Start starts a redis-server in the box and waits until it answers.
func (c RedisConfig) Start(ctx context.Context, b *Box) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is %w: install it (Debian: apt-get install redis-server), or use --store embedded", ErrMissing)
	}
	if c.Addr == "" {
		if c.Addr, err = b.Addr(); err != nil {
			return nil, err
		}
	}
	if c.Dir == "" {
		if c.Dir, err = b.Mkdir("redis"); err != nil {
			return nil, err
		}
	}
	if c.Command == nil {
		c.Command = exec.Command
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return nil, err
	}
	p, err := b.Start("redis-server", c.Command(path, "--bind", host, "--port", port, "--dir", c.Dir, "--protected-mode", "no",
		"--appendonly", "yes", "--appendfsync", cmp.Or(c.Fsync, "everysec"), "--save", "", "--daemonize", "no"))
	if err != nil {
		return nil, err
	}
	r := &Redis{Addr: c.Addr, Process: p}
	return r, p.WaitReady(ctx, func(ctx context.Context) error {
		info, err := redisInfo(ctx, c.Addr, "server")
		r.Version = info["redis_version"]
		return err
	})
}

// UsedMemory is what Redis says its data takes, in bytes.
func UsedMemory(ctx context.Context, addr string) (int64, error) {
	info, err := redisInfo(ctx, addr, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info["used_memory"], 10, 64)
}

// RedisTime is what the clock of a Redis says.
func RedisTime(ctx context.Context, addr string) (time.Time, error) {
	info, err := redisInfo(ctx, addr, "server")
	if err != nil {
		return time.Time{}, err
	}
	us, err := strconv.ParseInt(info["server_time_usec"], 10, 64)
	return time.UnixMicro(us), err
}

// redisInfo asks for one section of INFO. One command with one kind of reply
// does not need a client library, and bench may not pull in the store's.
func redisInfo(ctx context.Context, addr, section string) (map[string]string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	if _, err := fmt.Fprintf(c, "INFO %s\r\n", section); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil || head[0] != '$' {
		return nil, fmt.Errorf("redis at %s answered INFO with %q", addr, strings.TrimSpace(head))
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	return parseInfo(string(text)), nil
}

// parseInfo reads the key:value lines of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[key] = value
		}
	}
	return info
}
