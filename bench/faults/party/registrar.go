package party

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// registrar puts the audience of a plan and the schedule whose runs go through it, changes
// recipients while the round is played, and writes down what it was answered. It owns a goroutine
// for each change.
type registrar struct {
	c      *Config
	client *client.Client
	log    *ledger.Writer
}

// register returns when everything was done to all recipients.
func register(ctx context.Context, c *Config, log *ledger.Writer, _ io.Reader) (err error) {
	cl, err := client.Dial(c.Addr, client.Config{MaxElapsed: -1, Timeout: c.Giving})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	r := &registrar{c, cl, log}
	if err := r.open(ctx); err != nil {
		return err
	}
	all := plan.Recipients(&c.Config)
	first := make([]plan.Recipient, 0, len(all))
	for _, p := range all {
		if p.Op != ledger.Join {
			first = append(first, p)
		}
	}
	for from := 0; from < len(first); from += putAtOnce {
		r.again(ctx, ledger.Join, first[from:min(from+putAtOnce, len(first))])
	}
	r.schedule(ctx)
	var changes sync.WaitGroup
	for i := range all {
		if p := &all[i]; p.Op != "" {
			changes.Go(func() {
				r.sleep(ctx, time.Until(c.Start.Add(p.At)))
				r.again(ctx, p.Op, all[i:i+1])
			})
		}
	}
	changes.Wait()
	return ctx.Err()
}

// open creates the audience, and asks until it is there.
func (r *registrar) open(ctx context.Context) error {
	for ctx.Err() == nil {
		_, err := r.client.CreateAudience(ctx, client.Audience{
			Name: plan.Audience, Shards: plan.AudienceShards, Kinds: []client.AudienceKind{{Name: plan.AudienceKind}},
		})
		if err == nil || errors.Is(err, client.ErrExists) {
			return nil
		}
		r.sleep(ctx, again)
	}
	return ctx.Err()
}

// again does the same to some recipients until each is answered for certain, or the store has lost the
// audience, as a power cut may that costs the last seconds.
func (r *registrar) again(ctx context.Context, op ledger.Op, some []plan.Recipient) {
	for {
		if some = r.try(ctx, op, some); len(some) == 0 || ctx.Err() != nil {
			return
		}
		r.sleep(ctx, again)
	}
}

// try makes one call, writes it down, and returns those that nobody knows of, or that were refused.
func (r *registrar) try(ctx context.Context, op ledger.Op, some []plan.Recipient) (left []plan.Recipient) {
	calls := make([]ledger.Event, len(some))
	for i := range some {
		calls[i] = ledger.Event{Kind: ledger.Call, Op: op, Call: r.log.NextCall(), Topic: plan.Spread, Recipient: some[i].ID}
	}
	r.log.Append(calls...)
	results, err := r.change(ctx, op, some)
	for i := range calls {
		each := err
		if i < len(results) {
			each = results[i].Err
		}
		calls[i].Kind, calls[i].Result = ledger.Answer, ledger.OK
		if each != nil {
			calls[i].Result, calls[i].Reason = tap.Outcome(each)
			if !answeredForGood(&calls[i]) {
				left = append(left, some[i])
			}
		}
	}
	r.log.Append(calls...)
	return left
}

func (r *registrar) change(ctx context.Context, op ledger.Op, some []plan.Recipient) ([]client.RecipientResult, error) {
	if op == ledger.DropOut {
		ids := make([]string, len(some))
		for i := range some {
			ids[i] = some[i].ID
		}
		return r.client.DeleteRecipients(ctx, plan.Audience, ids)
	}
	list := make([]client.Recipient, len(some))
	for i := range some {
		list[i] = client.Recipient{ID: some[i].ID, Zone: some[i].Zone}
		switch op {
		case ledger.OptOut:
			list[i].Off = []string{plan.AudienceKind}
		case ledger.MoveOn:
			list[i].Zone = plan.Away
		}
	}
	return r.client.PutRecipients(ctx, plan.Audience, 0, list)
}

// schedule puts the schedule of the runs, and asks until that is answered.
func (r *registrar) schedule(ctx context.Context) {
	from := r.c.Start.Truncate(time.Second).Add(time.Second)
	t := &ledger.Timetable{
		FromMS: from.UnixMilli(), ToMS: r.c.Start.Add(r.c.For).Truncate(time.Second).UnixMilli(), EveryMS: plan.RunEvery.Milliseconds(),
		Overlap: client.OverlapAllow.String(), CatchUp: client.CatchUpAll.String(), GraceMS: runGrace.Milliseconds(),
	}
	s := client.Schedule{
		Topic: plan.Spread, Name: plan.Audience, Every: plan.RunEvery, Start: from, End: time.UnixMilli(t.ToMS),
		Overlap: client.OverlapAllow, CatchUp: client.CatchUpAll, Grace: runGrace, Task: client.Task{Payload: []byte("for you")},
		Audience: &client.AudienceTarget{Name: plan.Audience, Kind: plan.AudienceKind, Window: plan.RunWindow, Grain: plan.RunGrain, SpreadFrom: new(int64)},
	}
	for ctx.Err() == nil {
		call := ledger.Event{Kind: ledger.Call, Op: ledger.PutSchedule, Call: r.log.NextCall(), Topic: plan.Spread, Schedule: s.Name, Timetable: t, Spread: plan.IsSpread()}
		r.log.Append(call)
		_, err := r.client.PutSchedule(ctx, s)
		answer := answerOf(&call)
		if err != nil {
			answer.Result, answer.Reason = tap.Outcome(err)
		}
		answer.Spread = call.Spread
		r.log.Append(answer)
		if err == nil || answeredForGood(&answer) {
			return
		}
		r.sleep(ctx, again)
	}
}

// runGrace is how late a run may begin and be made all the same.
const runGrace = time.Hour

func (r *registrar) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
