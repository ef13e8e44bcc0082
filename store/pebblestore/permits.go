package pebblestore

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
	"github.com/ddq-io/ddq/store/record"
)

// readPermits gives the holds of topics under caps their permits.
func readPermits(d *datadir.Dir, all *shards, table *limit.Table) error {
	capped := make(map[string]store.TopicLimits)
	if err := eachTopic(d, func(t store.Topic) {
		if t.Limits.Capped() {
			capped[t.Name] = t.Limits
		}
	}); err != nil || len(capped) == 0 {
		return err
	}
	for _, sh := range all.list() {
		if limits, ok := capped[sh.name.Topic]; ok {
			if err := readPermitsOf(d, sh, limits, table); err != nil {
				return err
			}
		}
	}
	return nil
}

func readPermitsOf(d *datadir.Dir, sh *shard, limits store.TopicLimits, table *limit.Table) (err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(d); err != nil {
		return err
	}
	tasks := lookup{dir: d, number: sh.number}
	defer func() { err = errors.Join(err, tasks.close()) }()
	for _, h := range sh.holds.byID {
		permit := permitOf(h, store.LimitKey{Topic: sh.name.Topic})
		var permits []store.Permit
		if limits.Concurrency > 0 {
			permits = append(permits, permit)
		}
		if limits.KeyConcurrency > 0 {
			e, _, err := tasks.find(h.id)
			if err != nil {
				return err
			}
			// Traits that cannot be read have no key here, as they have none for the dispatch.
			if traits, err := record.DecodeTraits(e.traits()); err == nil && traits != nil && traits.ConcurrencyKey != "" {
				permit.Key.Key = traits.ConcurrencyKey
				permits = append(permits, permit)
			}
		}
		table.Move(permits)
	}
	return nil
}

// permitOf is the permit that a hold has, of one cap.
func permitOf(h *hold, key store.LimitKey) store.Permit {
	return store.Permit{Key: key, Holder: h.token, Until: h.deadline.Add(store.PermitSkew)}
}

// countNamespaces gives all holds of the namespaces under whose caps permits are asked for theirs, when that
// is done for the first time: the store is not told which namespaces have one.
func (l *limits) countNamespaces(ctx context.Context, asked []store.Acquire) error {
	for i := range asked {
		if asked[i].Key.Key != store.NamespaceCap {
			continue
		}
		if err := l.countNamespace(ctx, asked[i].Key); err != nil {
			return err
		}
	}
	return nil
}

// countNamespace holds up others who ask until all holds have their permits. They are moved under the lock of
// their shard: a hold that ends afterwards frees what it was given here.
func (l *limits) countNamespace(ctx context.Context, key store.LimitKey) error {
	if err := l.dir.Enter(ctx); err != nil {
		return err
	}
	defer l.dir.Leave()
	l.counting.Lock()
	defer l.counting.Unlock()
	if l.counted[key.Topic] {
		return nil
	}
	for _, sh := range l.shards.list() {
		if store.CapKey(sh.name.Topic, store.NamespaceCap) == key {
			if err := l.countShard(sh, key); err != nil {
				return err
			}
		}
	}
	if l.counted == nil {
		l.counted = make(map[string]bool)
	}
	l.counted[key.Topic] = true
	return nil
}

func (l *limits) countShard(sh *shard, key store.LimitKey) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(l.dir); err != nil {
		return err
	}
	permits := make([]store.Permit, 0, sh.holds.len())
	for _, h := range sh.holds.byID {
		permits = append(permits, permitOf(h, key))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.table.Move(permits)
	return nil
}
