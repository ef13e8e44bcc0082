package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
)

// bullMQFiles are a process of BullMQ in JavaScript, and what it needs: it tells what
// periodicSession does.
//
//go:embed bullmq/package.json bullmq/package-lock.json bullmq/periodic.mjs
var bullMQFiles embed.FS

// bullMQ is BullMQ with job schedulers on a redis-server of its own with its append-only file synced
// every second. It is installed in the box.
func (p *plan) bullMQ() periodicSystem {
	var dir string
	open := func(ctx context.Context, _ bench.Options, b *box.Box) (inst *bench.Instance, err error) {
		inst, dir, err = openBullMQ(ctx, b)
		return inst, err
	}
	return periodicSystem{"bullmq", open, func(inst *bench.Instance) *exec.Cmd {
		host, port, _ := net.SplitHostPort(inst.Target)
		cmd := exec.Command("node", "periodic.mjs", host, port, strconv.Itoa(p.schedules), strconv.Itoa(p.options.Concurrency))
		cmd.Dir = dir
		return cmd
	}}
}

func openBullMQ(ctx context.Context, b *box.Box) (inst *bench.Instance, dir string, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, "", fmt.Errorf("%s, which bullmq needs, is %w", program, box.ErrMissing)
		}
	}
	if dir, err = b.Mkdir("bullmq"); err != nil {
		return nil, "", err
	}
	if err := installBullMQ(ctx, dir); err != nil {
		return nil, "", err
	}
	redis, err := box.StartRedis(ctx, b, "everysec")
	if err != nil {
		return nil, "", err
	}
	return &bench.Instance{
		Target:   redis.Addr,
		Store:    "redis-everysec",
		Version:  versionOfPackage(filepath.Join(dir, "node_modules", "bullmq")),
		Settings: "a job scheduler each, with a pattern of every second; queue and worker as shipped",
		Disk:     []*box.Process{redis.Process},
	}, dir, nil
}

// installBullMQ installs exactly what the lock file says. Without a network that is box.ErrMissing.
func installBullMQ(ctx context.Context, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json", "periodic.mjs"} {
		text, err := bullMQFiles.ReadFile("bullmq/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bullmq is %w, and npm ci did not change that: %v: %s", box.ErrMissing, err, bytes.TrimSpace(out))
	}
	return nil
}

func versionOfPackage(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	about := struct{ Version string }{"unknown"}
	if err == nil {
		_ = json.Unmarshal(text, &about) // what it does not say stays unknown
	}
	return about.Version
}
