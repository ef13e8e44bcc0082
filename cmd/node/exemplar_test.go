package node

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// A bucket of the lateness leads to the trace of a task that is in it, for scrapers that ask for it.
func TestLatenessHasExemplars(t *testing.T) {
	n := startTraced(t, TracingConfig{})
	long := strings.Repeat("x", 128)
	for _, task := range []*ddqv1.EnqueueRequest{{Id: "a", Traceparent: tracedTask}, {Id: long, Traceparent: tracedTask}, {Id: "b", Traceparent: untracedTask}, {Id: "c"}} {
		n.deliver(task)
	}
	text := n.scrape("application/openmetrics-text")
	if !strings.Contains(text, `trace_id="`+tracedTask[3:35]+`"`) || strings.Contains(text, `task="b"`) || strings.Contains(text, `task="c"`) || strings.Contains(text, long) {
		t.Errorf("scraped %s", text)
	}
	if text := n.scrape(""); strings.Contains(text, "trace_id") || !strings.Contains(text, "ddq_lateness_seconds_bucket") {
		t.Errorf("scraped as text %s", text)
	}
	n.stop()
}
