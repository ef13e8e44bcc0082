package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
)

// operator creates the topics of a round, and changes them while it is played.
type operator struct{ *round }

// askAgain is the pause before a call is repeated that must succeed.
const askAgain = 150 * time.Millisecond

const (
	// defaultNamespace is that of who names none.
	defaultNamespace = "default"
	// quotaKnown is after how long all nodes know a quota: two seconds, on a machine that is not busy.
	quotaKnown = 3 * time.Second
)

// together is how many tasks a quota lets workers hold at a rate of so many a second: more than ordinary ones
// need, and fewer than come at once when something was broken.
func together(rate float64) int { return 4 + int(rate/10) }

// bound sets the quota of the namespace of all topics, if the round has one, and returns since when it counts.
func (o operator) bound(ctx context.Context) (since time.Time, err error) {
	if o.together == 0 {
		return time.Time{}, nil
	}
	most := int64(o.together)
	err = o.Nodes[0].Ask(func(c *client.Client) error {
		_, err := c.ConfigureNamespace(ctx, defaultNamespace, access.QuotaChange{MaxInFlight: &most})
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("set a quota: %w", err)
	}
	return time.Now().Add(quotaKnown), nil
}

// makeTopics creates all topics.
func (o operator) makeTopics(ctx context.Context) error {
	return o.Nodes[0].Ask(func(c *client.Client) error {
		for _, name := range plan.AllTopics() {
			policy, e := o.policyOf(name)
			if err := o.create(ctx, c, name, policy); err != nil {
				return fmt.Errorf("create topic %s: %w", name, err)
			}
			o.ledger.Append(e)
		}
		for _, name := range []string{plan.Kept, plan.Laned} {
			err := o.changeTopic(ledger.Event{Op: ledger.Pause, Topic: name}, func() (client.Topic, error) {
				return c.PauseTopic(ctx, name, client.Pause{Delivery: true})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ramp is how long they rise then.
const ramp = 500 * time.Millisecond

// operate changes topics while the round is played.
func (o operator) operate(ctx context.Context) error {
	c, err := client.Dial(o.Addr(), client.Config{Timeout: 3 * time.Second, MaxElapsed: -1})
	if err != nil {
		return err
	}
	for i := range 4 {
		if err := o.sleep(ctx, time.Until(o.start)+o.span*time.Duration(i+1)/10); err != nil {
			return errors.Join(err, c.Close())
		}
		_ = o.configure(ctx, c, i) // the ledger has it
	}
	if o.setting.reshard {
		o.reshard(ctx, c)
	}
	if err = o.sleep(ctx, time.Until(o.start)+plan.PausedFor(o.span)); err == nil {
		err = o.resume(ctx, c)
	}
	return errors.Join(err, c.Close())
}

// reshard gives the topics of schedules and workflows other shards, to which they move, and asks for as
// long as tasks are sent. Where that fails they stay, which is nobody's loss, and is said.
func (o operator) reshard(ctx context.Context, c *client.Client) {
	for _, name := range []string{plan.Scheduled, plan.Spread, plan.Flowed} {
		if err := o.reshardTopic(ctx, c, name); err != nil {
			fmt.Fprintf(o.log, "%s: topic %s keeps its shards: %v\n", o.fault.Name, name, err)
		}
	}
}

func (o operator) reshardTopic(ctx context.Context, c *client.Client, name string) error {
	for {
		_, err := c.ReshardTopic(ctx, name, 3+int(o.seed%4))
		again := errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrUnknown)
		if !again || time.Since(o.start) > o.span || o.sleep(ctx, askAgain) != nil {
			return err
		}
	}
}

// configure sets something of a topic, each time to another value.
func (o operator) configure(ctx context.Context, c *client.Client, i int) error {
	keep, most, ageing := time.Duration(25+i)*time.Hour, 100_000+i, 5+i
	policy := client.Policy{DoneRetention: &keep, MaxDead: &most, PriorityAgeing: &ageing}
	return o.changeTopic(ledger.Event{Op: ledger.Configure, Topic: plan.Kept, Settings: settings(policy)}, func() (client.Topic, error) {
		return c.ConfigureTopic(ctx, plan.Kept, policy)
	})
}

// settings are what configure sets, in words.
func settings(p client.Policy) string {
	return fmt.Sprintf("keep %v, %d dead, ageing %d", *p.DoneRetention, *p.MaxDead, *p.PriorityAgeing)
}

// create creates a topic, and asks until a server is reached. One that was made by a call without an
// answer is there then.
func (o operator) create(ctx context.Context, c *client.Client, name string, policy client.Policy) error {
	for asked := false; ; asked = true {
		_, err := c.CreateTopic(ctx, name, policy)
		switch {
		case asked && errors.Is(err, client.ErrExists):
			return nil
		case !errors.Is(err, client.ErrUnavailable) && !errors.Is(err, client.ErrUnknown) || o.sleep(ctx, askAgain) != nil:
			return err
		}
	}
}

// resume lets deliveries go on, and asks until it is answered.
func (o operator) resume(ctx context.Context, c *client.Client) error {
	for {
		err := o.changeTopic(ledger.Event{Op: ledger.Resume, Topic: plan.Kept}, func() (client.Topic, error) {
			return c.ResumeTopicSlowly(ctx, plan.Kept, ramp)
		})
		if err == nil {
			return nil
		}
		if o.sleep(ctx, askAgain) != nil {
			return fmt.Errorf("resume %s: %w", plan.Kept, err)
		}
	}
}
