package ui_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// keepOnce has a worker take the next task of a topic, keep values under names, and die with it.
func (r *rig) keepOnce(topic string, pairs ...string) {
	r.Helper()
	queue := ddqv1.NewDelayQueueServiceClient(r.client.Conn())
	got, err := queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: topic, WaitMs: 10_000})
	if err != nil || len(got.Deliveries) != 1 {
		r.Fatalf("retrieve: %v, %v", got, err)
	}
	d, all := got.Deliveries[0], &ddqv1.SettleRequest{Topic: topic}
	for i := 0; i < len(pairs); i += 2 {
		all.Checkpoints = append(all.Checkpoints, &ddqv1.Checkpoint{TaskId: d.Task.Id, HoldToken: d.HoldToken, Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	if reply, err := queue.Settle(r.Context(), all); err != nil || len(reply.Results) != 0 {
		r.Fatalf("settle: %v, %v", reply, err)
	}
}

// TestAJournalIsShown: its names and sizes to whoever sees the task, and its values with its payload.
func TestAJournalIsShown(t *testing.T) {
	r, _ := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a"})
	r.keepOnce("mail", "charge <1>", "paid by <ann>", "scan", "\xff\x00", "nothing", "")
	_, secret := r.token("viewer", "viewer:mail")
	viewer := r.login(secret)
	_, secret = r.token("reader", "viewer,payload:mail")
	reader := r.login(secret)
	for _, who := range []struct {
		name   string
		cookie *http.Cookie
		sees   bool
	}{{"a viewer", viewer, false}, {"one who may see payloads", reader, true}} {
		text := r.want(http.StatusOK, http.MethodGet, "/ui/task?topic=mail&id=a", nil, who.cookie)
		for _, want := range []string{"3 kept", "charge &lt;1&gt;", ">13<", "scan", ">2<", "nothing", ">0<"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not see %q", who.name, want)
			}
		}
		for _, value := range []string{"paid by &lt;ann&gt;", "ff 00"} {
			if strings.Contains(text, value) != who.sees {
				t.Errorf("%s sees %q: %v", who.name, value, !who.sees)
			}
		}
	}
}

func TestALargeJournalIsCut(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a"})
	pairs := []string{"large", strings.Repeat("v", 5000)}
	for i := range 150 {
		pairs = append(pairs, fmt.Sprintf("page-%03d", i), "")
	}
	r.keepOnce("mail", pairs...)
	page, text := r.get(http.StatusOK, "/ui/task?topic=mail&id=a")
	r.check("/ui/task", page)
	if !strings.Contains(text, "151 kept, the first 100") || strings.Count(text, "page-") != 99 {
		t.Errorf("%d entries are shown", strings.Count(text, "page-"))
	}
	if strings.Count(text, "v") > 2000 || !strings.Contains(text, strings.Repeat("v", 1000)) || !strings.Contains(text, "5\u202f000") {
		t.Error("the beginning of a large value, and its size, are not shown")
	}
}
