package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// lab is one instance under test with its producers and its worker process.
// The scenarios are its methods.
type lab struct {
	o      Options
	system System
	box    *box.Box
	inst   *Instance
	driver Driver // of the producers
	host   *host
	runs   uint32
	emit   func(result.Line) error

	standing int // tasks that lie in the store meanwhile
}

// setUp starts everything. tearDown must be called also when it fails.
func (l *lab) setUp(ctx context.Context) (err error) {
	if l.box, err = box.New(); err != nil {
		return err
	}
	if l.inst, err = l.system.Open(ctx, l.o, l.box); err != nil {
		return fmt.Errorf("%s: %w", l.system.Name, err)
	}
	if l.driver, err = l.system.Dial(ctx, l.inst.Target); err != nil {
		return fmt.Errorf("%s: %w", l.system.Name, err)
	}
	if d, ok := l.driver.(*ddqDriver); ok {
		d.contexts = l.o.Traces.Contexts()
	}
	if l.o.API == apiREST {
		_, topic, _ := splitTarget(l.inst.Target)
		l.driver = newHTTPDriver(l.driver, l.inst.HTTPAddr, topic, l.o.Producers)
	}
	l.host, err = startWorker(l.box, l.o, l.system.Name, l.inst.Target)
	return err
}

// tearDown stops and removes what setUp made. ctx may have ended already.
func (l *lab) tearDown(ctx context.Context) error {
	var errs []error
	if l.host != nil {
		errs = append(errs, l.host.close())
	}
	if l.driver != nil {
		errs = append(errs, l.driver.Close())
	}
	if l.inst != nil && l.inst.Close != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminTimeout)
		defer cancel()
		errs = append(errs, l.inst.Close(ctx))
	}
	if l.box != nil {
		errs = append(errs, l.box.Close())
	}
	if l.inst != nil && l.inst.Spans != nil {
		l.inst.Spans.Close()
		fmt.Fprintf(l.o.Log, "spans taken by the collector: %d\n", l.inst.Spans.Spans())
	}
	return errors.Join(errs...)
}

// line is what every result of this lab has in common.
func (l *lab) line(workload string, tasks int) result.Line {
	return result.Line{
		Schema: 1, System: l.system.Name, Version: l.inst.Version, Workload: workload,
		Store: l.inst.Store, Settings: l.inst.Settings, Seed: l.o.Seed, Tasks: tasks, Payload: l.o.Payload,
		Concurrency: l.o.Concurrency, Producers: l.o.Producers, Backlog: l.standing, Machine: result.Machine(),
	}
}

// maker numbers the next run and makes its tasks.
func (l *lab) maker() *maker {
	l.runs++
	return newMaker(l.o.Seed, l.runs, l.o.Payload)
}

// preload puts n tasks into the store that are due later than an hour from now,
// and returns the time it took.
func (l *lab) preload(ctx context.Context, n int) (span, error) {
	m := l.maker()
	from := time.Now().Add(2 * time.Hour).Truncate(time.Millisecond)
	bar := l.bar("preload", n)
	defer bar.close()
	s, err := newLoad("batch", l.o.Producers, n, func(i int) Task {
		if i%batchSize == 0 {
			bar.add(batchSize)
		}
		return m.task(i, from.Add(time.Duration(i%3_600_000)*time.Millisecond))
	}).send(ctx, l.driver)
	if err != nil {
		return s, fmt.Errorf("preload: %w", err)
	}
	l.standing += n
	return s, nil
}

// usage is what every party used up to now.
func (l *lab) usage() result.Roles {
	return result.Roles{Client: box.OwnCPU() + box.CPU([]*box.Process{l.host.process}), Server: box.CPU(l.inst.Server), Store: box.CPU(l.inst.Disk)}
}

// memory is what every party occupies now, in MB.
func (l *lab) memory() result.Roles {
	mb := func(n int64) float64 { return result.Round(float64(n)/1e6, 1) }
	return result.Roles{Client: mb(box.OwnMemory() + box.RSS([]*box.Process{l.host.process})), Server: mb(box.RSS(l.inst.Server)), Store: mb(box.RSS(l.inst.Disk))}
}

// settle fills in what the worker saw of a run of n tasks.
func settle(line *result.Line, r Report, n int) error {
	h, err := r.Histogram()
	if err != nil {
		return fmt.Errorf("lateness histogram: %w", err)
	}
	line.Late, line.LateMS = h, lateness.Of(h)
	line.Early, line.Duplicate, line.Repeat = r.Early, r.Duplicate, r.Repeat
	line.Lost = n - r.Tasks
	return nil
}

// await waits for the run to be delivered, and reads what the worker saw of it.
// A run that stalls is reported with what is missing as lost.
func (l *lab) await(ctx context.Context, run uint32, n int, idle time.Duration) (Report, error) {
	bar := l.bar("deliveries", n)
	defer bar.close()
	err := l.host.done(ctx, run, idle, bar.set)
	if err != nil && !errors.Is(err, errStalled) {
		return Report{}, err
	}
	r, reportErr := l.host.report(ctx)
	if err != nil && reportErr == nil {
		l.explain(ctx, r, n)
	}
	return r, reportErr
}

// explain says what is known about a run that stalled, while everything is
// still there to be asked.
func (l *lab) explain(ctx context.Context, r Report, n int) {
	fmt.Fprintf(l.o.Log, "%s: %v: %d of %d tasks delivered, %d acks accepted, %d stray deliveries\n",
		l.system.Name, errStalled, r.Tasks, n, r.Acked, r.Stray)
	if l.inst.Pending != nil {
		waiting, err := l.inst.Pending(ctx)
		fmt.Fprintf(l.o.Log, "waiting in the store: %d, of which %d are the backlog (%v)\n", waiting, l.standing, err)
	}
	for _, p := range append(append([]*box.Process{l.host.process}, l.inst.Server...), l.inst.Disk...) {
		fmt.Fprintf(l.o.Log, "%s, running: %v, printed last:\n%s\n", p.Name, p.Running(), p.Tail())
	}
}

// bar shows progress when somebody looks at it.
type bar struct{ *progressbar.ProgressBar }

func (l *lab) bar(what string, n int) bar {
	f, ok := l.o.Log.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return bar{}
	}
	return bar{progressbar.NewOptions(n, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(progressEvery), progressbar.OptionClearOnFinish(), progressbar.OptionShowCount())}
}

func (b bar) add(n int) {
	if b.ProgressBar != nil {
		_ = b.Add(n)
	}
}

func (b bar) set(n int) {
	if b.ProgressBar != nil {
		_ = b.Set(n)
	}
}

func (b bar) close() {
	if b.ProgressBar != nil {
		_ = b.Clear()
	}
}
