package workers_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

// work opens a stream of a worker with credit.
func work(t *testing.T, at *servicetest.Node, topic, name string, credit int) *servicetest.Stream {
	t.Helper()
	o := &servicetest.Stream{T: t}
	sub, err := at.Sys.Delivery.Subscribe(t.Context(), subscription.Options{Topic: topic, Worker: name, MaxInFlight: 10, Client: "go"}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Grant(credit); err != nil {
		t.Fatal(err)
	}
	o.Sub = sub
	synctest.Wait()
	return o
}

// listed pages through the workers that a node lists, as node/topic/name.
func listed(t *testing.T, at *service.Service, topic string, size int) (all []string) {
	t.Helper()
	for token := ""; ; {
		page, err := at.Workers.List(t.Context(), topic, size, token)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Workers) > size || len(page.Silent) > 0 {
			t.Errorf("page of %d, silent are %v", len(page.Workers), page.Silent)
		}
		for _, w := range page.Workers {
			all = append(all, w.Node+"/"+w.Topic+"/"+w.Name)
		}
		if token = page.Next; token == "" {
			return all
		}
	}
}

// The subscriptions that nodes have at each other are not among them.
func TestWorkersOfAllNodesAreListedInPages(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		var want, mail []string
		for _, node := range []string{"a", "c"} {
			for _, topic := range []string{"mail", "sms"} {
				for n := range 3 {
					name := fmt.Sprint("w", n)
					work(t, f.Nodes[node], topic, name, 1)
					want = append(want, node+"/"+topic+"/"+name)
				}
			}
			mail = append(mail, node+"/mail/w0", node+"/mail/w1", node+"/mail/w2")
		}
		for _, size := range []int{1, 2, 5, 12, 100} {
			if got := listed(t, f.Nodes["b"].Sys, "", size); !slices.Equal(got, want) {
				t.Errorf("in pages of %d:\n%v\nwant\n%v", size, got, want)
			}
		}
		if got := listed(t, f.Nodes["b"].Sys, "mail", 2); !slices.Equal(got, mail) {
			t.Errorf("of a topic: %v, want %v", got, mail)
		}
	})
}

func TestAWorkerSaysWhatItHas(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		since := f.Nodes["a"].Sys.Node().Clock().Millis()
		o := work(t, f.Nodes["a"], "mail", "w", 5)
		for n := range 3 { // in shards of both nodes
			servicetest.EnqueueOne(t, f.Nodes["b"].Sys, servicetest.After("mail", fmt.Sprint("t", n), 0))
		}
		time.Sleep(time.Second)
		if got := o.Take(); len(got) != 3 {
			t.Fatalf("got %d deliveries", len(got))
		}
		page, err := f.Nodes["b"].Sys.Workers.List(t.Context(), "mail", 10, "")
		if err != nil || len(page.Workers) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		w := page.Workers[0]
		if w.Node != "a" || w.Since != since || w.InFlight != 3 || w.Credit != 2 || w.MaxInFlight != 10 || w.Client != "go" {
			t.Errorf("%+v, since %d", w, since)
		}
		o.Sub.Unsubscribe(nil)
		synctest.Wait()
		if got := listed(t, f.Nodes["a"].Sys, "", 10); got != nil {
			t.Errorf("after its end %v", got)
		}
	})
}

func TestANodeThatDoesNotAnswerIsNamed(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		work(t, f.Nodes["a"], "mail", "w", 1)
		work(t, f.Nodes["b"], "mail", "w", 1)
		f.Mu.Lock()
		f.Cut[[2]string{"c", "b"}] = true
		f.Mu.Unlock()
		page, err := f.Nodes["c"].Sys.Workers.List(t.Context(), "", 10, "")
		if err != nil || !slices.Equal(page.Silent, []string{"b"}) || len(page.Workers) != 1 || page.Workers[0].Node != "a" {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

func TestListsOfWorkersThatCannotBe(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		at := f.Nodes["a"].Sys
		work(t, f.Nodes["a"], "mail", "v", 1)
		work(t, f.Nodes["a"], "mail", "w", 1)
		page, err := at.Workers.List(t.Context(), "mail", 1, "")
		if err != nil || page.Next == "" {
			t.Fatalf("%+v, %v", page, err)
		}
		for name, c := range map[string]struct {
			topic  string
			size   int
			token  string
			reason string
		}{
			"a negative size":             {"", -1, "", "OUT_OF_RANGE_FIELD"},
			"no token":                    {"", 1, "%", "BAD_CURSOR"},
			"the token of another list":   {"", 1, "dG9waWNzOm1haWw", "BAD_CURSOR"},
			"the token of another topic":  {"sms", 1, page.Next, "BAD_CURSOR"},
			"a topic that there is not":   {"sms", 1, "", "NO_TOPIC"},
			"what is no name of a topic":  {"a b", 1, "", "BAD_NAME"},
			"more than a page may have":   {"", 1 << 30, "", ""},
			"the token of the same topic": {"mail", 1, page.Next, ""},
		} {
			_, err := at.Workers.List(t.Context(), c.topic, c.size, c.token)
			e, refused := errors.AsType[*problem.Error](err)
			if refused != (c.reason != "") || refused && e.Reason != c.reason {
				t.Errorf("%s: %v, want %q", name, err, c.reason)
			}
		}
	})
}
