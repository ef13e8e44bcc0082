package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/result"
)

const (
	policyRounds = 3
	policyTasks  = 100_000
)

// policyTurns compares topics whose tasks use policies with a plain one: in turns, with a worker
// process each, on one server. A line has the medians of one of them, against those of the plain one.
func (l *lab) policyTurns(ctx context.Context) (err error) {
	settings := []policies{nil, policyWords, {policyWatch}}
	if len(l.o.policies) > 0 {
		settings = []policies{nil, l.o.policies}
	}
	if l.inst.Close != nil { // the server goes on
		defer func() {
			for _, p := range settings {
				err = errors.Join(err, l.inst.deleteTopic(ctx, l.topicOf(p)))
			}
		}()
	}
	lines := make([][]result.Line, len(settings))
	for round := range policyRounds + 1 { // the first is the warm-up
		for i, p := range settings {
			n := l.o.tasks(policyTasks)
			if round == 0 {
				n = max(n/10, 1)
			}
			line, err := l.policyTurn(ctx, p, n)
			if err != nil {
				return err
			}
			if round > 0 {
				lines[i] = append(lines[i], line)
			}
		}
	}
	plain := medianLine(lines[0])
	for _, of := range lines {
		if err := l.emit(medianLine(of).Against(&plain)); err != nil {
			return err
		}
	}
	return nil
}

// topicOf is the topic whose tasks use policies.
func (l *lab) topicOf(p policies) string {
	return fmt.Sprintf("bench-%d-%s", l.o.Seed, p.name("-"))
}

// name is how people call policies.
func (p policies) name(between string) string {
	if slices.Equal(p, policyWords) {
		return "all"
	}
	return cmp.Or(strings.Join(p, between), "none")
}

// policyTurn measures one setting.
func (l *lab) policyTurn(ctx context.Context, p policies, n int) (result.Line, error) {
	line := l.line("policies", n)
	line.Mode, line.Policies = "batch", p.name("+")
	if err := l.turnTo(ctx, p); err != nil {
		return line, err
	}
	if err := l.host.work(ctx); err != nil {
		return line, err
	}
	if err := l.endToEnd(ctx, "batch", &line); err != nil {
		return line, err
	}
	if err := l.host.pause(ctx); err != nil {
		return line, err
	}
	return line, l.apart(ctx, "batch", &line)
}

// turnTo has producers and a new worker process use the topic of some policies.
func (l *lab) turnTo(ctx context.Context, p policies) error {
	c, err := l.inst.connect()
	if err != nil {
		return err
	}
	_, err = c.CreateTopic(ctx, l.topicOf(p), p.topic())
	if errors.Is(err, client.ErrExists) {
		err = nil
	}
	if err := errors.Join(err, c.Close(), l.host.close(), l.driver.Close()); err != nil {
		return err
	}
	target := p.target(l.inst.Addr, l.topicOf(p))
	if l.driver, err = l.system.Dial(ctx, target); err != nil {
		return err
	}
	l.host, err = startWorker(l.box, l.o, l.system.Name, target)
	return err
}
