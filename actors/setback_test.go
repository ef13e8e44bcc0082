package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store/memstore"
)

// A store that loses the last it answered, as a Redis does that syncs every second and has a
// power cut, has tasks again that were held and settled. Neither is counted by the shard's seq.
func TestSettledTaskThatTheStoreLostComesAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{WatchdogInterval: time.Hour}, st)
		defer s.Node().Stop(context.Background())
		subscribed := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "t", time.Second))
		synctest.Wait()
		was := st.Clone()
		time.Sleep(2 * time.Second)
		first := subscribed.Take()
		if len(first) != 1 {
			t.Fatalf("delivered %d tasks, want one", len(first))
		}
		subscribed.Settle(subscription.SettleAck, first[0])
		time.Sleep(time.Minute) // its shard dozes

		st.Restore(was)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := subscribed.Take(); len(got) != 1 || got[0].Task.ID != "t" {
			t.Errorf("delivered %d tasks two seconds after the store went back, want the one again", len(got))
		}
	})
}
