package pebblestore

import (
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
	for name, sh := range all.byName {
		if limits, ok := capped[name.Topic]; ok {
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
		permit := store.Permit{Key: store.LimitKey{Topic: sh.name.Topic}, Holder: h.token, Until: h.deadline.Add(store.PermitSkew)}
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
