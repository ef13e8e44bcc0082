package service

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// FuzzFinderCursor: whatever a caller sends back is a place to go on from, or refused.
func FuzzFinderCursor(f *testing.F) {
	mem := memstore.New()
	s := New(actors.New(actors.Config{}, mem, slog.New(slog.DiscardHandler), nil), nil)
	topic := store.Topic{Name: "mail", Shards: 1, Indexed: store.NewIndexSet("tenant")}
	shard := store.Shard{Topic: "mail"}
	var batch []*store.Task
	for i := range 10 {
		id := fmt.Sprintf("t%02d", i)
		batch = append(batch, &store.Task{ID: id, Due: 1, Indexed: topic.Indexed, Attributes: []store.Attribute{{Key: "tenant", Value: "acme"}}})
	}
	if _, _, err := mem.Add(f.Context(), shard, batch); err != nil {
		f.Fatal(err)
	}
	acme := TaskFilter{Attributes: []AttributeMatch{{Key: "tenant", Value: "acme"}}}
	x := s.Finder.reads.byAttributes(&topic, &acme, acme.kinds())
	for cursor := ""; ; {
		_, next, err := x.page(f.Context(), shard, cursor, 3)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(cursor)
		if cursor = next; cursor == "" {
			break
		}
	}
	f.Add(`{"w":{"k":9,"p":""}}`)
	f.Add(`{"i":{"a":-1,"v":"","t":""},"w":{"k":1,"p":"1:x"}}`)
	f.Fuzz(func(t *testing.T, cursor string) {
		tasks, next, err := x.page(t.Context(), shard, cursor, 3)
		switch {
		case errors.Is(err, store.ErrBadCursor):
		case err != nil:
			t.Fatal(err)
		case next == cursor && next != "" && len(tasks) > 0:
			t.Errorf("cursor %q leads to itself", cursor)
		}
	})
}
