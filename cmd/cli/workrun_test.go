package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/worker"
)

func TestCommandsLearnForWhomATaskIs(t *testing.T) {
	at := time.Date(2030, 1, 2, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		run  *worker.Run
		want []string
	}{
		{nil, nil},
		{&worker.Run{Schedule: "digest", Occurrence: at}, []string{"DDQ_SCHEDULE=digest", "DDQ_OCCURRENCE_TIME=2030-01-02T09:00:00.000Z"}},
		{&worker.Run{Recipient: "ada", RecipientData: []byte("x=1")}, []string{"DDQ_RECIPIENT=ada", "DDQ_RECIPIENT_DATA=x=1"}},
		{&worker.Run{Recipient: "a\x00b", RecipientData: []byte("\xff")}, []string{"DDQ_RECIPIENT_DATA_BASE64=/w=="}},
		{&worker.Run{RecipientData: []byte("\x00")}, []string{"DDQ_RECIPIENT_DATA_BASE64=AA=="}},
	} {
		if got := viewRun(c.run).environment(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.run, got, c.want)
		}
	}
}
