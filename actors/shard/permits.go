package shard

import (
	"context"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// heldPermits are permits of holds, by task.
type heldPermits map[string]*dispatch.Permit

// permitCalls are the store calls about the permits of holds. They run off the actor.
type permitCalls struct {
	*shardState
	store interface {
		store.Writer
		store.Reader
		store.Limits
	}
}

// lengthen gives holds under caps the visibility timeout that their tasks have of
// their own, which was not known before: the permits first.
func (c *permitCalls) lengthen(ctx context.Context, m *holdsDone) {
	var permits []store.Permit
	var extends []store.Extend
	var at []int
	latest := c.latest()
	for i, r := range m.results {
		l := m.batch[i].admission
		if r.Status != store.OK || l == nil || l.Permit == nil || r.Task.Visibility <= m.tokens[i].Visibility {
			continue
		}
		until := latest.Add(r.Task.Visibility + PermitSlack)
		for _, p := range l.Permit.Each() {
			p.Until = until
			permits = append(permits, p)
		}
		extends = append(extends, store.Extend{
			ID: m.tokens[i].ID, Token: m.tokens[i].Token, Visibility: r.Task.Visibility,
			Until: until.Add(-store.PermitSkew),
		})
		at = append(at, i)
	}
	if len(at) == 0 || c.store.Move(ctx, permits) != nil {
		return // the holds are shorter: what the worker is told
	}
	_, longer, err := c.store.Extend(ctx, c.id, extends)
	if err != nil {
		return
	}
	for k, i := range at {
		if longer[k].Status == store.OK {
			m.results[i].Deadline = longer[k].Deadline
		}
	}
}

// capsOf are the caps that tasks are held under now, for those of some ids.
func (c *permitCalls) capsOf(ctx context.Context, limits *store.TopicLimits, ids []string) ([][]store.LimitKey, error) {
	keys := make([][]store.LimitKey, len(ids))
	var found []store.Snapshot
	if limits.KeyConcurrency > 0 {
		var err error
		if _, found, err = store.GetAll(ctx, c.store, c.id, ids); err != nil {
			return nil, err
		}
	}
	for i := range ids {
		var traits *store.Traits
		if len(found) > 0 {
			traits = found[i].Traits
		}
		keys[i] = capsOver(c.id.Topic, limits, traits)
	}
	return keys, nil
}

// capsOver are the caps that a task of a topic, of some traits, is held under.
func capsOver(topic string, limits *store.TopicLimits, traits *store.Traits) (keys []store.LimitKey) {
	if limits.KeyConcurrency > 0 && traits != nil && traits.ConcurrencyKey != "" {
		keys = append(keys, store.CapKey(topic, traits.ConcurrencyKey))
	}
	for _, key := range [...]string{"", store.NamespaceCap} {
		if limits.Cap(key) > 0 {
			keys = append(keys, store.CapKey(topic, key))
		}
	}
	return keys
}

// permitOf is the permit that a hold was taken under.
func permitOf(token store.Token, keys []store.LimitKey) *dispatch.Permit {
	return &dispatch.Permit{Holder: token, Keys: keys}
}

// unknownPermits are permits of holds that the shard does not know: another node took them,
// and the worker settles them here. Only who took a hold hears of its end without a notice.
type unknownPermits map[store.Token]*dispatch.Permit

// end frees the permit of a hold that is over, if it is one of them.
func (u unknownPermits) end(r *topicReport, token store.Token) {
	if p := u[token]; p != nil {
		r.endPermit(p)
	}
}

// unknown returns the permits of holds that are to be settled and are not known here. It
// comes before the settlement, after which tasks may be gone.
func (c *permitCalls) unknown(ctx context.Context, limits *store.TopicLimits, batch []settleItem) unknownPermits {
	var ids []string
	var holders []store.Token
	for i := range batch {
		if batch[i].capped {
			ids, holders = append(ids, batch[i].ask.ID), append(holders, batch[i].token())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	caps, err := c.capsOf(ctx, limits, ids)
	if err != nil {
		return nil // the owner frees them, or they end by themselves
	}
	permits := make(unknownPermits)
	for i, keys := range caps {
		if len(keys) > 0 {
			permits[holders[i]] = permitOf(holders[i], keys)
		}
	}
	return permits
}

// move moves the permits of holds that are to be extended, bounds the extensions by them, and
// returns the caps that those are under. A hold that is over has none: what Move makes of it
// would last as long as was asked for.
func (c *permitCalls) move(ctx context.Context, limits *store.TopicLimits, batch []settleItem, extends []store.Extend) (caps [][]store.LimitKey, err error) {
	ids, asks := make([]string, len(extends)), limits.KeyConcurrency > 0
	for i := range extends {
		ids[i], asks = extends[i].ID, asks || batch[i].capped
	}
	found := make([]store.Snapshot, len(extends)) // left out where the owner knows that they are held
	if asks {
		if _, found, err = store.GetAll(ctx, c.store, c.id, ids); err != nil {
			return nil, err
		}
	}
	caps = make([][]store.LimitKey, len(extends))
	var permits []store.Permit
	latest := c.latest()
	for i := range extends {
		x := &extends[i]
		if asks && (found[i].State != store.StateRunning || found[i].Token != x.Token) {
			continue
		}
		caps[i] = capsOver(c.id.Topic, limits, found[i].Traits)
		until := latest.Add(x.Visibility + PermitSlack)
		for _, key := range caps[i] {
			permits = append(permits, store.Permit{Key: key, Holder: x.Token, Until: until})
			x.Until = until.Add(-store.PermitSkew)
		}
	}
	return caps, c.store.Move(ctx, permits)
}

// freeOver frees the permits of holds that turned out to be over.
func (c *permitCalls) freeOver(ctx context.Context, extends []store.Extend, results []store.ExtendResult, caps [][]store.LimitKey) {
	var permits []store.Permit
	for i, r := range results {
		if r.Status != store.OK {
			for _, key := range caps[i] {
				permits = append(permits, store.Permit{Key: key, Holder: extends[i].Token})
			}
		}
	}
	if len(permits) == 0 {
		return
	}
	if _, err := c.store.Free(ctx, permits); err != nil {
		c.Log.Debug("permits not freed", "topic", c.id.Topic, "shard", c.id.N, "err", err)
	}
}

// inherit returns the permits of holds that another owner of the shard took.
func (c *permitCalls) inherit(ctx context.Context, limits *store.TopicLimits, holds []store.Running) (heldPermits, error) {
	ids := make([]string, len(holds))
	for i := range holds {
		ids[i] = holds[i].ID
	}
	caps, err := c.capsOf(ctx, limits, ids)
	if err != nil {
		return nil, err
	}
	permits := make(heldPermits)
	for i, keys := range caps {
		if len(keys) > 0 {
			permits[ids[i]] = permitOf(holds[i].Token, keys)
		}
	}
	return permits, nil
}
