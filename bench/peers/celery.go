package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
)

// celeryFile is both processes of Celery in Python.
//
//go:embed celery/flows.py
var celeryFile []byte

// flowCelery is Celery with a redis-server of its own as broker and result backend, with its
// append-only file synced every second.
func (p *plan) flowCelery() flowSystem {
	var python, dir string
	command := func(inst *bench.Instance, s *flowShape, args ...string) *exec.Cmd {
		cmd := exec.Command(python, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "FLOWS_REDIS=redis://"+inst.Target+"/0", fmt.Sprint("FLOWS_HOLD=", s.hold.Seconds()))
		return cmd
	}
	return flowSystem{
		name: "celery",
		open: func(ctx context.Context, b *box.Box) (inst *bench.Instance, err error) {
			inst, python, dir, err = openCelery(ctx, b)
			return inst, err
		},
		worker: func(inst *bench.Instance, n int, s *flowShape) *exec.Cmd {
			return command(inst, s, "-m", "celery", "-A", "flows", "worker", "--concurrency", p.share(n), "--hostname", fmt.Sprint("w", n, "@localhost"))
		},
		submitter: func(inst *bench.Instance, s *flowShape) *exec.Cmd {
			return command(inst, s, "flows.py", s.kind, strconv.Itoa(s.size))
		},
	}
}

func openCelery(ctx context.Context, b *box.Box) (inst *bench.Instance, python, dir string, err error) {
	python, version, err := findCelery(ctx)
	if err != nil {
		return nil, "", "", err
	}
	if dir, err = b.Mkdir("celery"); err != nil {
		return nil, "", "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "flows.py"), celeryFile, 0o644); err != nil {
		return nil, "", "", err
	}
	redis, err := box.StartRedis(ctx, b, "everysec")
	if err != nil {
		return nil, "", "", err
	}
	return &bench.Instance{
		Target: redis.Addr, Store: "redis-everysec", Version: version, Settings: "workflows: chain and chord; two prefork workers as shipped",
		Disk: []*box.Process{redis.Process},
	}, python, dir, nil
}

// findCelery looks for a Python that has it: the system's may not be the first on the path.
func findCelery(ctx context.Context) (python, version string, err error) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.CommandContext(ctx, python, "-c", "import celery, redis; print(celery.__version__)").Output()
		if err == nil {
			return python, strings.TrimSpace(string(out)), nil
		}
	}
	return "", "", fmt.Errorf("celery is %w: install it with its client of Redis (Debian: apt-get install python3-celery python3-redis)", box.ErrMissing)
}
