package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// Redis is a redis-server of the harness's own, with an append-only file.
type Redis struct {
	Addr    string
	Version string
	Process *Process
}

// StartRedis starts a redis-server in the box, its append-only file synced
// everysec or always, and waits until it answers.
func StartRedis(ctx context.Context, box *Box, fsync string) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is %w: install it (Debian: apt-get install redis-server), or use --store embedded", ErrMissing)
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	dir, err := box.Mkdir("redis")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	p, err := box.Start("redis-server", exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--appendonly", "yes", "--appendfsync", fsync, "--save", "", "--daemonize", "no"))
	if err != nil {
		return nil, err
	}
	r := &Redis{Addr: addr, Process: p}
	return r, p.WaitReady(ctx, func(ctx context.Context) error {
		info, err := redisInfo(ctx, addr, "server")
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
