package node

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/operations"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/store/sealstore"
)

// reencryption is what an operation does that encrypts the store anew.
type reencryption func(ctx context.Context, mark string, batch int, report func(operations.Progress) error) error

// reencryptionOf returns nil where the node encrypts nothing.
func reencryptionOf(cfg *Config, st store.Store) reencryption {
	sealed, ok := st.(*sealstore.Store)
	if !ok || cfg.Encryption.masters == nil || cfg.Encryption.Mode == encryptionRead {
		return nil
	}
	return func(ctx context.Context, mark string, batch int, report func(operations.Progress) error) error {
		return sealed.Reencrypt(ctx, sealstore.Reencryption{
			Shards: func(ctx context.Context) ([]store.Shard, error) { return everyShard(ctx, sealed) },
			Batch:  batch, Mark: mark,
			Report: func(r sealstore.Reencrypted) error {
				return report(operations.Progress{Matched: r.Looked, Changed: r.Sealed, Skipped: r.Unread, Mark: r.Mark})
			},
		})
	}
}

// everyShard returns the shards of all topics and audiences, and those of what has no topic.
func everyShard(ctx context.Context, st *sealstore.Store) ([]store.Shard, error) {
	topics, err := st.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	shards := []store.Shard{audience.Catalog(), schedule.CalendarShard}
	for i := range topics {
		shards = append(shards, place.Shards(&topics[i])...)
	}
	for cursor := ""; ; {
		page, next, err := st.CellPage(ctx, audience.Catalog(), audience.CatalogKind, cursor, store.BatchItems)
		if err != nil {
			return nil, fmt.Errorf("list audiences: %w", err)
		}
		for i := range page {
			a, err := audience.DecodeAudience(page[i])
			if err != nil {
				return nil, err
			}
			for n := range a.Shards { // also of one that is deleted meanwhile
				shards = append(shards, a.Shard(n).Name())
			}
		}
		if cursor = next; cursor == "" {
			return shards, nil
		}
	}
}
