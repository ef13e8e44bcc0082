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

// bullMQFiles are processes of BullMQ in JavaScript, and what they need: periodic.mjs tells what
// periodicSession does, and flows.mjs what flowBook has.
//
//go:embed bullmq/package.json bullmq/package-lock.json bullmq/periodic.mjs bullmq/flows.mjs
var bullMQFiles embed.FS

// bullMQ is BullMQ with job schedulers on a redis-server of its own with its append-only file synced
// every second. It is installed in the box.
func (p *plan) bullMQ() periodicSystem {
	var dir string
	open := func(ctx context.Context, _ bench.Options, b *box.Box) (inst *bench.Instance, err error) {
		inst, dir, err = openBullMQ(ctx, b, "a job scheduler each, with a pattern of every second; queue and worker as shipped")
		return inst, err
	}
	return periodicSystem{"bullmq", open, func(inst *bench.Instance) *exec.Cmd {
		host, port, _ := net.SplitHostPort(inst.Target)
		cmd := exec.Command("node", "periodic.mjs", host, port, strconv.Itoa(p.schedules), strconv.Itoa(p.options.Concurrency))
		cmd.Dir = dir
		return cmd
	}}
}

// flowBullMQ is BullMQ with flows, on a redis-server as above.
func (p *plan) flowBullMQ() flowSystem {
	var dir string
	command := func(inst *bench.Instance, what string, args ...string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(inst.Target)
		cmd := exec.Command("node", append([]string{"flows.mjs", what, host, port}, args...)...)
		cmd.Dir = dir
		return cmd
	}
	return flowSystem{
		name: "bullmq",
		open: func(ctx context.Context, b *box.Box) (inst *bench.Instance, err error) {
			inst, dir, err = openBullMQ(ctx, b, "workflows: a job for each step, whose children are what it waits for; two workers as shipped")
			return inst, err
		},
		worker: func(inst *bench.Instance, n int, s *flowShape) *exec.Cmd {
			return command(inst, "work", p.share(n), strconv.FormatInt(s.hold.Milliseconds(), 10))
		},
		submitter: func(inst *bench.Instance, s *flowShape) *exec.Cmd {
			return command(inst, "submit", s.kind, strconv.Itoa(s.size))
		},
	}
}

func openBullMQ(ctx context.Context, b *box.Box, settings string) (inst *bench.Instance, dir string, err error) {
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
		Settings: settings,
		Disk:     []*box.Process{redis.Process},
	}, dir, nil
}

// installBullMQ installs exactly what the lock file says. Without a network that is box.ErrMissing.
func installBullMQ(ctx context.Context, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json", "periodic.mjs", "flows.mjs"} {
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
