package pebblestore

import (
	"errors"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// readPermits gives the holds of topics under caps their permits.
func (s *Store) readPermits() error {
	capped := make(map[string]store.TopicLimits)
	if err := s.eachTopic(func(t store.Topic) {
		if t.Limits.Capped() {
			capped[t.Name] = t.Limits
		}
	}); err != nil || len(capped) == 0 {
		return err
	}
	for name, sh := range s.shards {
		if limits, ok := capped[name.Topic]; ok {
			if err := s.readPermitsOf(sh, limits); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) readPermitsOf(sh *shard, limits store.TopicLimits) (err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(s); err != nil {
		return err
	}
	tasks := lookup{s: s, number: sh.number}
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
		s.limits.table.Move(permits)
	}
	return nil
}
