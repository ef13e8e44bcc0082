package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
)

// functions is a worker for the steps of workflows on orders, and a client.
type functions struct {
	*testing.T
	*client.Client
	stop func() // returns when the worker has ended

	mu  sync.Mutex
	ran map[string]int // by what was said; guarded by mu
}

func startFunctions(r *rig, steps func(f *functions) worker.Steps) *functions {
	f := &functions{T: r.T, Client: client.New(r.conn, client.Config{}), ran: make(map[string]int)}
	ctx, cancel := context.WithCancel(r.Context())
	var over sync.WaitGroup
	over.Go(func() {
		cfg := worker.Config{Topic: "orders", Logger: slog.New(slog.DiscardHandler)}
		if err := worker.New(r.conn, cfg, steps(f)).Run(ctx); err != nil {
			r.Error(err)
		}
	})
	f.stop = func() { cancel(); over.Wait() }
	return f
}

// count notes that something is done, and returns how often it was.
func (f *functions) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran[what]++
	return f.ran[what]
}

// once is a Once that counts.
func (f *functions) once(ctx context.Context, t worker.Task, name string) error {
	_, err := t.Once(ctx, name, func(context.Context) ([]byte, error) {
		f.count(name)
		return []byte(name), nil
	})
	return err
}

func (f *functions) submit(steps ...client.Step) {
	f.Helper()
	if _, err := f.Submit(f.Context(), client.Workflow{Topic: "orders", ID: "w", Steps: steps}); err != nil {
		f.Fatal(err)
	}
}

// await waits until the workflow is in a state for good.
func (f *functions) await(want client.WorkflowState) client.WorkflowStatus {
	f.Helper()
	_, err := f.WaitWorkflow(f.Context(), "orders", "w", 2*time.Hour)
	s, steps, _ := f.GetWorkflow(f.Context(), "orders", "w")
	if err != nil || s.State != want {
		f.Fatalf("it is %v (%s %s), %v, want %v: %+v", s.State, s.Cause, s.Error, err, want, steps)
	}
	return s
}

// step is one of the workflow as it stands.
func (f *functions) step(name string) client.StepStatus {
	f.Helper()
	_, steps, err := f.GetWorkflow(f.Context(), "orders", "w")
	i := slices.IndexFunc(steps, func(s client.StepStatus) bool { return s.Name == name })
	if err != nil || i < 0 {
		f.Fatalf("no step %q among %+v, %v", name, steps, err)
	}
	return steps[i]
}

// tasks have these payloads.
func tasks(payloads ...string) (all []client.Task) {
	for _, p := range payloads {
		all = append(all, client.Task{Payload: []byte(p), MaxRetries: new(0)})
	}
	return all
}

// told is what a Call returned, as text.
func told(all []worker.Outcome) string {
	var b strings.Builder
	for _, o := range all {
		fmt.Fprintf(&b, "%s %v %s%s; ", o.Step, o.State, o.Result, o.Error)
	}
	return b.String()
}

// echo returns its payload, or fails if that says so.
func echo(_ context.Context, t worker.Task) error {
	if string(t.Payload) == "bad" {
		return errors.New("no such page")
	}
	return t.SetResult(append([]byte("got "), t.Payload...))
}

// Two calls in a row, and what is done between: each part once. The step is done behind the last one.
func TestStepGoesOnWhenItsCallsHaveEnded(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					f.count("start")
					if err := f.once(ctx, t, "first"); err != nil {
						return err
					}
					pages, err := t.Call(ctx, "pages", tasks("a", "bad", "c")...)
					if err != nil {
						return err
					}
					if err := f.once(ctx, t, "second"); err != nil {
						return err
					}
					index, err := t.Call(ctx, "index", tasks("i")...)
					if err != nil {
						return err
					}
					if value, known := t.Remembered("first"); !known || string(value) != "first" {
						f.Errorf("the first part is remembered as %q, %t", value, known)
					}
					return t.SetResult([]byte(told(pages) + told(index)))
				},
				"pages": echo,
				"index": echo,
				"last":  func(_ context.Context, t worker.Task) error { return t.SetResult(t.ResultOf("start")) },
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start"}, client.Step{Name: "last", After: client.After("start")})
		s := f.await(client.WorkflowDone)
		want := "start.pages-1 done got a; start.pages-2 failed no such page; start.pages-3 done got c; start.index-1 done got i; "
		if string(s.Result) != want {
			r.Errorf("it returned %q, want %q", s.Result, want)
		}
		if f.ran["start"] != 3 || f.ran["first"] != 1 || f.ran["second"] != 1 {
			r.Errorf("ran %v, want start three times and its parts once", f.ran)
		}
		if start := f.step("start"); start.Try != 1 || start.State != client.StepDone {
			r.Errorf("start is %+v", start)
		}
	})
}

// An attempt that fails behind a call is repeated without it, and its worker may die.
func TestCallsAreNotMadeAgainByLaterAttempts(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					if err := f.once(ctx, t, "before"); err != nil {
						return err
					}
					if _, err := t.Call(ctx, "page", tasks("a")...); err != nil {
						return err
					}
					if f.count("behind") < 3 {
						return errors.New("not yet")
					}
					return t.SetResult(fmt.Append(nil, t.Attempt))
				},
				"page": func(ctx context.Context, t worker.Task) error { f.count("page"); return nil },
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start", Task: client.Task{MaxRetries: new(5)}})
		if s := f.await(client.WorkflowDone); string(s.Result) != "3" || f.ran["page"] != 1 || f.ran["before"] != 1 {
			r.Errorf("done in attempt %s, ran %v", s.Result, f.ran)
		}
	})
}

// A loop of calls is as long as it likes: names do not grow with it, and each gets its own results.
func TestCallsInALoop(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		const rounds = 50
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					sum := 0
					for i := range rounds {
						got, err := t.Call(ctx, fmt.Sprintf("round-%d", i), tasks(fmt.Sprint(i))...)
						if err != nil {
							return err
						}
						if string(got[0].Result) != fmt.Sprint("got ", i) || len(got) != 1 {
							f.Errorf("round %d returned %s", i, told(got))
						}
						sum += i
					}
					return t.SetResult(fmt.Append(nil, sum))
				},
				"round": echo,
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start"})
		if s := f.await(client.WorkflowDone); string(s.Result) != fmt.Sprint(rounds*(rounds-1)/2) {
			r.Errorf("it returned %s", s.Result)
		}
	})
}

// A signal may come before its wait, and in it; or not in time.
func TestAwaitReturnsASignal(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{"start": func(ctx context.Context, t worker.Task) error {
				early, err := t.Await(ctx, "early", time.Hour)
				if err != nil {
					return err
				}
				late, err := t.Await(ctx, "late", time.Hour)
				if err != nil {
					return err
				}
				_, err = t.Await(ctx, "never", time.Minute)
				if !errors.Is(err, worker.ErrTimedOut) {
					return err
				}
				return t.SetResult(append(early, late...))
			}}
		})
		defer f.stop()
		_, err := f.Submit(r.Context(), client.Workflow{Topic: "orders", ID: "w", Steps: []client.Step{{Name: "begin", Wait: client.Wait{Delay: time.Minute}}, {Name: "start", After: client.After("begin")}}})
		must(r, err)
		must(r, f.SignalWorkflow(r.Context(), "orders", "w", client.Signal{Name: "early", Payload: []byte("a")}))
		time.Sleep(2 * time.Minute)
		if start := f.step("start"); start.State != client.StepMade || start.Reason != "suspended" || start.BecauseOf != "start.late" || start.ID != "" {
			r.Errorf("the step that waits is %+v", start)
		}
		must(r, f.SignalWorkflow(r.Context(), "orders", "w", client.Signal{Name: "late", Payload: []byte("b")}))
		if s := f.await(client.WorkflowDone); string(s.Result) != "ab" {
			r.Errorf("it returned %q", s.Result)
		}
	})
}

// A handler that returns the error of an Await fails for good: its other attempts would get the same.
func TestATimeoutThatIsReturnedFailsTheStep(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{"start": func(ctx context.Context, t worker.Task) error {
				f.count("start")
				_, err := t.Await(ctx, "approve", time.Minute)
				return err
			}}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start", Task: client.Task{MaxRetries: new(5)}})
		if s := f.await(client.WorkflowFailed); f.ran["start"] != 2 || !strings.Contains(s.Error, "no signal came in time") {
			r.Errorf("ran %v, failed with %q", f.ran, s.Error)
		}
	})
}

// What waits when the workflow is cancelled does not go on. A retry has it go on from its last call.
func TestCancelAndRetryOfAStepThatWaits(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					if err := f.once(ctx, t, "before"); err != nil {
						return err
					}
					if _, err := t.Call(ctx, "page", tasks("a")...); err != nil {
						return err
					}
					answer, err := t.Await(ctx, "approve", 0)
					if err != nil {
						return err
					}
					return t.SetResult(answer)
				},
				"page": func(ctx context.Context, t worker.Task) error { f.count("page"); return nil },
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start"})
		time.Sleep(time.Minute)
		_, err := f.CancelWorkflow(r.Context(), "orders", "w", "")
		must(r, err)
		f.await(client.WorkflowCancelled)
		if start, wait := f.step("start"), f.step("start.approve"); start.State != client.StepCancelled || wait.State != client.StepCancelled {
			r.Errorf("they are %v and %v", start.State, wait.State)
		}
		for round, retry := range []func() (client.WorkflowStatus, error){
			func() (client.WorkflowStatus, error) { return f.RetryWorkflow(r.Context(), "orders", "w") },
			func() (client.WorkflowStatus, error) { return f.RetryWorkflowFrom(r.Context(), "orders", "w", "start") },
		} {
			_, err = retry()
			must(r, err)
			time.Sleep(time.Minute)
			must(r, f.SignalWorkflow(r.Context(), "orders", "w", client.Signal{Name: "approve", Payload: fmt.Append(nil, "yes ", round)}))
			s := f.await(client.WorkflowDone)
			if want := fmt.Sprint("yes ", round); string(s.Result) != want || f.ran["page"] != round+1 || f.ran["before"] != round+1 {
				r.Errorf("round %d returned %q, ran %v", round, s.Result, f.ran)
			}
		}
	})
}

// What the server refuses of a call fails the attempt, and says why.
func TestCallsThatAreRefusedFailTheAttempt(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("small", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(3)})(r))
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{"start": func(ctx context.Context, t worker.Task) error {
				_, err := t.Call(ctx, "page", client.Task{Topic: "small", Payload: []byte("four")})
				return err
			}}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start", Task: client.Task{MaxRetries: new(0)}})
		if s := f.await(client.WorkflowFailed); !strings.HasPrefix(s.Error, "grow.steps[0].task.payload: ") {
			r.Errorf("failed with %q", s.Error)
		}
	})
}

// Tasks of calls may be in other topics, and so may the step that calls.
func TestCallsReachOtherTopics(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps { return worker.Steps{"page": echo} })
		defer f.stop()
		ctx, cancel := context.WithCancel(r.Context())
		var over sync.WaitGroup
		defer over.Wait()
		defer cancel()
		over.Go(func() {
			err := worker.New(r.conn, worker.Config{Topic: "away", Logger: slog.New(slog.DiscardHandler)}, worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					if err := f.once(ctx, t, "first"); err != nil {
						return err
					}
					got, err := t.Call(ctx, "page", client.Task{Topic: "orders", Payload: []byte("a")}, client.Task{Payload: []byte("b")})
					if err != nil {
						return err
					}
					return t.SetResult([]byte(told(got)))
				},
				"page": echo,
			}).Run(ctx)
			if err != nil {
				r.Error(err)
			}
		})
		f.submit(client.Step{Name: "start", Task: client.Task{Topic: "away"}})
		if s := f.await(client.WorkflowDone); string(s.Result) != "start.page-1 done got a; start.page-2 done got b; " || f.ran["first"] != 1 {
			r.Errorf("it returned %q, ran %v", s.Result, f.ran)
		}
	})
}

// Results that have more than 1 MiB together are left out of the task, and Call reads them.
func TestCallReturnsLargeResults(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					got, err := t.Call(ctx, "page", tasks("a", "b", "c", "d", "e", "f")...)
					if err != nil {
						return err
					}
					for _, o := range got {
						if len(o.Result) != worker.MaxResult || !t.Step.InputsCut {
							f.Errorf("%s returned %d bytes, cut %t", o.Step, len(o.Result), t.Step.InputsCut)
						}
					}
					return t.SetResult(got[5].Result[:1])
				},
				"page": func(_ context.Context, t worker.Task) error {
					return t.SetResult(bytes.Repeat(t.Payload, worker.MaxResult))
				},
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start"})
		if s := f.await(client.WorkflowDone); string(s.Result) != "f" {
			r.Errorf("it returned %q", s.Result)
		}
	})
}

// Copies call for themselves.
func TestCopiesCallForThemselves(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					got, err := t.Call(ctx, "page", tasks(fmt.Sprint(t.Step.Copy))...)
					if err != nil {
						return err
					}
					if want := fmt.Sprintf("start#%d.page-1 done got %d; ", t.Step.Copy, t.Step.Copy); told(got) != want {
						f.Errorf("copy %d got %q", t.Step.Copy, told(got))
					}
					return nil
				},
				"page": echo,
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start", Copies: new(11), AtATime: 3})
		f.await(client.WorkflowDone)
	})
}

// A journal goes on while it has room for all of it; then the call fails the attempt.
func TestAJournalGoesOnWhileItHasRoom(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		f := startFunctions(r, func(f *functions) worker.Steps {
			return worker.Steps{
				"start": func(ctx context.Context, t worker.Task) error {
					for i := range 5 {
						if err := t.Checkpoint(ctx, fmt.Sprint("part", i), make([]byte, worker.MaxValue-1000)); err != nil {
							return err
						}
						if _, err := t.Call(ctx, fmt.Sprint("call", i), tasks("x")...); err != nil {
							return err
						}
						f.count("returned")
					}
					return nil
				},
				"call0": echo, "call1": echo, "call2": echo, "call3": echo, "call4": echo,
			}
		})
		defer f.stop()
		f.submit(client.Step{Name: "start", Task: client.Task{MaxRetries: new(0)}})
		if s := f.await(client.WorkflowFailed); !strings.Contains(s.Error, "the journal") || f.ran["returned"] != 4+3+2+1 {
			r.Errorf("failed with %q, ran %v", s.Error, f.ran)
		}
	})
}
