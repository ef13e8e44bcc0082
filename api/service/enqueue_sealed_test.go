package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// deafTo is a store that does not answer questions about one topic.
type deafTo struct {
	*memstore.Store
	topic string
}

func (s *deafTo) GetTopic(ctx context.Context, name string) (store.Topic, error) {
	if name == s.topic {
		return store.Topic{}, store.ErrUnavailable
	}
	return s.Store.GetTopic(ctx, name)
}

// The shards of one topic are sealed, and where its tasks go now is not known: those of other topics, which are stored, are
// answered as such.
func TestTasksOfSealedShardsFailAlone(t *testing.T) {
	st := &deafTo{Store: memstore.New()}
	s := servicetest.Start(t, actors.Config{}, st)
	defer s.Node().Stop(context.Background())
	servicetest.EnqueueOne(t, s, servicetest.After("sealed", "first", time.Hour))
	topic, err := st.Store.GetTopic(t.Context(), "sealed")
	if err != nil {
		t.Fatal(err)
	}
	for n := topic.First; n < topic.End(); n++ {
		if err := st.Seal(t.Context(), store.Shard{Topic: "sealed", N: n}.For(topic.Life)); err != nil {
			t.Fatal(err)
		}
	}
	st.topic = "sealed"
	out, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{
		servicetest.After("mail", "a", time.Hour), servicetest.After("sealed", "b", time.Hour), servicetest.After("mail", "c", time.Hour),
	})
	if err != nil {
		t.Fatalf("the whole request fails: %v", err)
	}
	for i, want := range []string{"", "STORE_DOWN", ""} {
		got := ""
		if out[i].Err != nil {
			got = out[i].Err.Reason
		}
		if got != want {
			t.Errorf("task %d: %q, want %q", i, got, want)
		}
	}
}
