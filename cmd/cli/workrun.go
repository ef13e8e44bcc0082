package cli

import (
	"encoding/base64"
	"strings"

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
