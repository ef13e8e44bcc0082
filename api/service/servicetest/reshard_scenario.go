package servicetest

import (
	"github.com/ddq-io/ddq/store"
)

func (f *Fleet) Reshard(at *Node, topic string, shards int) store.Topic {
	f.Helper()
	t, err := at.Sys.Topics.Reshard(f.Context(), topic, shards)
	if err != nil {
		f.Fatal(err)
	}
	return t
}
