package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/bench/faults/party"
)

// workerFaults are those of worker processes, and of what tasks do to them.
func workerFaults() []Fault {
	return []Fault{
		{
			Name: "worker-crash", What: "kill -9 of a worker, and a new one", Stores: everywhere(), strike: crashWorker,
			Cost: "what it held comes again when the hold is over, under the next attempt", Prompt: true,
		},
		{
			Name: "worker-hang", What: "all handlers of a worker hang for longer than a hold", Stores: everywhere(), strike: hangWorker,
			Cost: "what it has waits, as the worker extends its holds; others take the rest",
		},
		{
			Name: "half-open", What: "SIGSTOP of a worker for longer than a hold: its connection is open and nobody reads", Stores: everywhere(), strike: pauseWorker,
			Cost: "what it was sent comes again when the hold is over; what it settles afterwards is refused",
		},
		{
			Name: "slow", What: "a worker that runs a tenth of the time (SIGSTOP and SIGCONT)", Stores: everywhere(), strike: slowWorker,
			Cost: "its tasks are late; other workers' are not",
		},
		{
			Name: "poison", What: "a fifth of the tasks make their handler panic, always", Stores: everywhere(), strike: onlyWait, once: true,
			Cost: "those go to the dead letters after their last attempt; others are not late", Prompt: true,
			tune: func(s *setting) { s.mix.Poison = 200 },
		},
		{
			Name: "herd", What: "as many tasks again as in five minutes, all due at one instant", Stores: everywhere(), strike: onlyWait, once: true,
			Cost: "lateness, as long as the workers take",
			tune: func(s *setting) {
				s.herd, s.work, s.concurrency = 100_000, 0, 256
				s.span = max(s.span, 12*time.Second)
			},
		},
	}
}

func crashWorker(ctx context.Context, r *round) error {
	i, w := r.anyWorker()
	return r.broken(ctx, "kill -9 "+w.Name, func() error {
		if err := w.Kill(); err != nil {
			return err
		}
		if err := r.pause(ctx, 0, time.Second); err != nil {
			return err
		}
		return r.replaceWorker(i)
	})
}

func hangWorker(ctx context.Context, r *round) error {
	_, w := r.anyWorker()
	return r.broken(ctx, "hang "+w.Name, func() error {
		d := r.hold * 3 / 2
		if _, err := fmt.Fprintln(w.orders, party.OrderHang, d); err != nil {
			return err
		}
		return r.sleep(ctx, d)
	})
}

func pauseWorker(ctx context.Context, r *round) error {
	_, w := r.anyWorker()
	return r.broken(ctx, "pause "+w.Name, func() error {
		if err := w.Pause(); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold*5/4, r.hold*2); err != nil {
			return err
		}
		return w.Resume()
	})
}

func slowWorker(ctx context.Context, r *round) error {
	_, w := r.anyWorker()
	return r.broken(ctx, "slow down "+w.Name, func() error {
		for range 15 {
			if err := w.Pause(); err != nil {
				return err
			}
			if err := r.pause(ctx, 150*time.Millisecond, 250*time.Millisecond); err != nil {
				return err
			}
			if err := w.Resume(); err != nil {
				return err
			}
			if err := r.sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

// onlyWait is for faults that are in the tasks.
func onlyWait(ctx context.Context, r *round) error {
	return r.broken(ctx, r.fault.What, func() error {
		return r.sleep(ctx, time.Until(r.start.Add(r.span)))
	})
}
