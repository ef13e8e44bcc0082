package cli

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// runView is what a schedule has said about its task; empty of all others.
type runView struct {
	Schedule            string  `json:"schedule,omitempty"`
	OccurrenceTime      string  `json:"occurrence_time,omitempty"`
	Recipient           string  `json:"recipient,omitempty"`
	RecipientData       *string `json:"recipient_data,omitempty"`
	RecipientDataBase64 []byte  `json:"recipient_data_base64,omitempty"`
}

func viewRun(r *worker.Run) runView {
	if r == nil {
		return runView{}
	}
	v := runView{Schedule: r.Schedule, OccurrenceTime: terminal.Clock(r.Occurrence), Recipient: r.Recipient}
	if len(r.RecipientData) > 0 {
		v.RecipientData, v.RecipientDataBase64 = viewPayload(r.RecipientData)
	}
	return v
}

// environment is what a command learns of it. No variable can have a zero byte: data that has
// one, or is no text, comes in base64, and such an id does not come.
func (v runView) environment() (vars []string) {
	set := func(name, value string) {
		if value != "" && !strings.Contains(value, "\x00") {
			vars = append(vars, name+"="+value)
		}
	}
	set("DDQ_SCHEDULE", v.Schedule)
	set("DDQ_OCCURRENCE_TIME", v.OccurrenceTime)
	set("DDQ_RECIPIENT", v.Recipient)
	data := v.RecipientDataBase64
	if v.RecipientData != nil {
		set("DDQ_RECIPIENT_DATA", *v.RecipientData)
		if strings.Contains(*v.RecipientData, "\x00") {
			data = []byte(*v.RecipientData)
		}
	}
	set("DDQ_RECIPIENT_DATA_BASE64", base64.StdEncoding.EncodeToString(data))
	return vars
}

// errLongResult ends a command that printed too much for a result.
var errLongResult = errors.New("what the command printed is too long for a result")

// resultBuffer takes what there is room for. More than that is an error, which ends the
// command.
type resultBuffer struct {
	got  bytes.Buffer
	left int
	full bool
}

func (b *resultBuffer) Write(p []byte) (int, error) {
	if len(p) > b.left {
		b.full = true
		return 0, errLongResult
	}
	b.left -= len(p)
	return b.got.Write(p)
}

// lockedWriter lets several goroutines write to one stream.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
