package ui_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// The page of a task leads to the traces of its producer and its attempts, where it is known where
// traces are looked at.
func TestTimelineLeadsToTraces(t *testing.T) {
	const parent, attempt = "4bf92f3577b34da6a3ce929d0e0e4736", "01010101010101010101010101010101"
	for _, args := range [][]string{nil, {"--trace-url", "https://traces.example.com/{trace_id}?a=b"}} {
		r := start(t, args...)
		queue := ddqv1.NewDelayQueueServiceClient(r.client.Conn())
		if _, err := r.client.CreateTopic(t.Context(), "mail", client.Policy{}); err != nil {
			t.Fatal(err)
		}
		if _, err := queue.Enqueue(t.Context(), &ddqv1.EnqueueRequest{Topic: "mail", Id: "a", Traceparent: "00-" + parent + "-00f067aa0ba902b7-01"}); err != nil {
			t.Fatal(err)
		}
		held, err := queue.Retrieve(t.Context(), &ddqv1.RetrieveRequest{Topic: "mail", WaitMs: 10_000})
		if err != nil || len(held.Deliveries) != 1 {
			t.Fatalf("%v, %v", held, err)
		}
		if _, err := queue.Nack(t.Context(), &ddqv1.NackRequest{Topic: "mail", Nack: &ddqv1.Nack{
			TaskId: "a", HoldToken: held.Deliveries[0].HoldToken, Permanent: true, TraceId: bytes.Repeat([]byte{1}, 16),
		}}); err != nil {
			t.Fatal(err)
		}
		_, text := r.get(http.StatusOK, "/ui/task?topic=mail&id=a")
		for _, id := range []string{parent, attempt} {
			link := `<a href="https://traces.example.com/` + id + `?a=b" rel="noreferrer">` + id
			if !strings.Contains(text, id) || strings.Contains(text, link) != (args != nil) {
				t.Errorf("with %v: the trace %s is not as it should be in\n%s", args, id, text)
			}
		}
	}
}
