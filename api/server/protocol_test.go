package server

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/server/status"
)

// The page for users names every reason that the tests saw.
func TestProtocolNamesEveryReason(t *testing.T) {
	page, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{"BAD_MESSAGE", "BAD_STREAM", "STREAM_STALLED", status.Draining().Reason, "STARTING", "NOT_OWNER", "NOT_OWNED", "NODE_UNREACHABLE", "NODE_REFUSED", "TASK_GONE"}
	for _, c := range slices.Concat(waitRefusals, refusals, scheduleRefusals) {
		reasons = append(reasons, c.reason)
	}
	for _, reason := range reasons {
		if reason != "" && !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("PROTOCOL.md does not name %s", reason)
		}
	}
}
