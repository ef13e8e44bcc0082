package overview

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Topic is how a topic fares.
type Topic struct {
	Name                                  string
	Scheduled, Ready, Running, Done, Dead int64
	Lateness                              time.Duration // of the oldest task that is ready

	// Due has how many tasks come due in each of the next seconds, from DueFrom on: of as many
	// seconds, 60 at most, as are known whole.
	Due     []int64
	DueFrom time.Time

	// Pulse is what has happened to its tasks of late; nil when nothing has within the hour.
	Pulse *Pulse
}

// Pulse is what has happened to the tasks of a topic of late, as all nodes counted it.
type Pulse struct {
	Minute Window // in steps of 5 seconds
	Hour   Window // in steps of a minute
}

// Window is what has happened in steps that are over. A series has a number for each step, the oldest
// first, or none when all of them are 0.
type Window struct {
	From  time.Time // the first step begins
	Step  time.Duration
	Steps int

	Enqueued, Delivered, Acked []int64
	Failed                     []int64 // attempts that were nacked, or not settled in time
	Dead                       []int64 // tasks that became dead letters
	Latest                     []time.Duration

	PerSecond Rates
	Lateness  Lateness
}

// Rates are the means of a window, a second.
type Rates struct{ Enqueued, Delivered, Acked, Failed, Dead float64 }

// Lateness is by how much deliveries came after their due times. Percentiles are up to 6 % too great.
type Lateness struct{ P50, P99, Max time.Duration }

// Overview is how topics fare, and what is missing of it.
type Overview struct {
	Topics []Topic // by name

	// SilentNodes did not answer in time: what only they know is missing.
	SilentNodes []string
	// PulsesIncomplete is set when a node had more topics in use within the hour than it counts.
	PulsesIncomplete bool
}

// Overviews are the calls about how topics fare, and who takes their tasks. A client.Client has them.
type Overviews struct {
	do    call.Do
	admin ddqv1.AdminServiceClient
}

// New returns the calls over a connection.
func New(do call.Do, admin ddqv1.AdminServiceClient) Overviews { return Overviews{do, admin} }

// Overview returns how a topic fares, or every one when it is empty. It may be a second old.
func (c *Overviews) Overview(ctx context.Context, topic string) (Overview, error) {
	first, err := c.page(ctx, topic, "")
	if err != nil {
		return Overview{}, err
	}
	return c.whole(ctx, topic, first)
}

// WatchOverview goes through what Overview returns, once a second, until ctx ends, which ends the
// sequence with its error. When a server goes away another one is asked, and the sequence ends with
// the error when none answers within the client's timeout. A loop that is slow misses seconds.
func (c *Overviews) WatchOverview(ctx context.Context, topic string) iter.Seq2[Overview, error] {
	return func(yield func(Overview, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for {
			all, err := c.Overview(ctx, topic) // says what is wrong when a stream has ended
			if !yield(all, err) || err != nil {
				return
			}
			second := time.After(time.Second)
			if !c.follow(ctx, topic, yield) {
				return
			}
			select {
			case <-second:
			case <-ctx.Done():
			}
		}
	}
}

// follow hands over what one server sends until that ends, and reports whether more is wanted.
func (c *Overviews) follow(ctx context.Context, topic string, yield func(Overview, error) bool) bool {
	stream, err := c.admin.WatchOverview(ctx, &ddqv1.WatchOverviewRequest{Topic: topic, PageSize: call.PageSize})
	for err == nil {
		var r *ddqv1.WatchOverviewResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		var all Overview
		if all, err = c.whole(ctx, topic, r.GetOverview()); err == nil && !yield(all, nil) {
			return false
		}
	}
	return true
}

func (c *Overviews) page(ctx context.Context, topic, token string) (*ddqv1.GetOverviewResponse, error) {
	return call.Answer(ctx, c.do, call.Idempotent, c.admin.GetOverview, &ddqv1.GetOverviewRequest{Topic: topic, PageSize: call.PageSize, PageToken: token})
}

// whole returns the overview that begins with a page.
func (c *Overviews) whole(ctx context.Context, topic string, r *ddqv1.GetOverviewResponse) (all Overview, err error) {
	for {
		all.add(r)
		if r.GetNextPageToken() == "" {
			return all, nil
		}
		if r, err = c.page(ctx, topic, r.GetNextPageToken()); err != nil {
			return Overview{}, err
		}
	}
}

func (o *Overview) add(r *ddqv1.GetOverviewResponse) {
	from := time.UnixMilli(r.GetDueFromUnixMs()).UTC()
	for _, t := range r.GetTopics() {
		o.Topics = append(o.Topics, topicFrom(t, from))
	}
	for _, node := range r.GetSilentNodes() {
		if !slices.Contains(o.SilentNodes, node) {
			o.SilentNodes = append(o.SilentNodes, node)
		}
	}
	o.PulsesIncomplete = o.PulsesIncomplete || r.GetPulsesIncomplete()
}

func topicFrom(t *ddqv1.TopicOverview, from time.Time) Topic {
	d := t.GetDepth()
	out := Topic{
		Name: t.GetTopic().GetName(), Scheduled: d.GetScheduled(), Ready: d.GetReady(), Running: d.GetRunning(), Done: d.GetDone(), Dead: d.GetDead(),
		Lateness: wire.Duration(t.GetLatenessMs()), Due: t.GetDue(), DueFrom: from,
	}
	if p := t.GetPulse(); p != nil {
		out.Pulse = &Pulse{windowFrom(p.GetMinute()), windowFrom(p.GetHour())}
	}
	return out
}

func windowFrom(w *ddqv1.PulseWindow) Window {
	rates, late := w.GetPerSecond(), w.GetLateness()
	return Window{
		From: time.UnixMilli(w.GetFromUnixMs()).UTC(), Step: wire.Duration(w.GetStepMs()), Steps: int(w.GetSteps()),
		Enqueued: w.GetEnqueued(), Delivered: w.GetDelivered(), Acked: w.GetAcked(), Failed: w.GetFailed(), Dead: w.GetDead(),
		Latest:    call.List(w.GetLatestMs(), wire.Duration),
		PerSecond: Rates{rates.GetEnqueued(), rates.GetDelivered(), rates.GetAcked(), rates.GetFailed(), rates.GetDead()},
		Lateness:  Lateness{wire.Duration(late.GetP50Ms()), wire.Duration(late.GetP99Ms()), wire.Duration(late.GetMaxMs())},
	}
}

// Worker is a subscription of a worker at a node, or a call that waits for tasks. A worker that takes
// tasks of several topics, or is connected to every node, has one for each.
type Worker struct {
	Name        string // as it calls itself; empty when it does not
	Topic       string
	Node        string    // that it is connected to
	Since       time.Time // on the store's clock
	InFlight    int64     // tasks that were found for it and are not settled
	Credit      int64     // tasks that it will take beyond those
	MaxInFlight int64
	Client      string // the user agent of its program; empty when it sent none
}

// Workers goes through the workers of a topic, of every topic when it is empty, by node, topic and
// age. Those at nodes that do not answer in time are missing. The sequence ends with the first error.
func (c *Overviews) Workers(ctx context.Context, topic string) iter.Seq2[Worker, error] {
	return call.Pages(func(token string) ([]Worker, string, error) {
		r, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ListWorkers, &ddqv1.ListWorkersRequest{Topic: topic, PageSize: call.PageSize, PageToken: token})
		return call.List(r.GetWorkers(), workerFrom), r.GetNextPageToken(), err
	})
}

func workerFrom(w *ddqv1.Worker) Worker {
	return Worker{
		Name: w.GetName(), Topic: w.GetTopic(), Node: w.GetNode(), Since: time.UnixMilli(w.GetSinceUnixMs()).UTC(),
		InFlight: w.GetInFlight(), Credit: w.GetCredit(), MaxInFlight: w.GetMaxInFlight(), Client: w.GetClient(),
	}
}
