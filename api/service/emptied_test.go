package service_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store/memstore"
)

// TestAStoreThatWasEmptiedIsTold: a store that forgets everything while its node runs, as after FLUSHALL, is warned of, and a
// topic that the node knew comes back with the policy that it had, whoever uses it next.
func TestAStoreThatWasEmptiedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		empty := st.Clone()
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(t.Context())
		warned := func() bool {
			status, err := s.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(strings.Join(status.Warnings, "\n"), "knew nothing of this node")
		}
		most, keep := 7, 3*time.Hour
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{MaxBacklog: &most, DoneRetention: &keep}); err != nil {
			t.Fatal(err)
		}
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "before", time.Hour))
		time.Sleep(time.Minute)
		if warned() {
			t.Error("it is warned of before")
		}
		st.Restore(empty)
		time.Sleep(time.Minute)
		if !warned() {
			t.Error("nobody is warned")
		}
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "after", time.Hour))
		servicetest.EnqueueOne(t, s, servicetest.After("new", "a", time.Hour))
		if mail, err := s.Topics.Describe(t.Context(), "mail"); err != nil || mail.MaxBacklog != most || mail.DoneRetention != keep {
			t.Errorf("the topic is %+v, %v", mail.Topic, err)
		}
		if other, err := s.Topics.Describe(t.Context(), "new"); err != nil || other.MaxBacklog != 0 {
			t.Errorf("a topic that nobody knew is %+v, %v", other.Topic, err)
		}
		synctest.Wait()
	})
}
