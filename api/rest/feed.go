package rest

import (
	"encoding/json"
	"net/http"
	"time"
)

// unreadFor is how long a client may leave a stream unread before it is cut.
const unreadFor = 5 * time.Second

const linesType = "application/x-ndjson"

// feed writes a stream of text. A client that does not read is cut off.
type feed struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newFeed(w http.ResponseWriter, contentType string) *feed {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Accel-Buffering", "no")
	return &feed{w, http.NewResponseController(w)}
}

// send writes text and does not keep it.
func (f *feed) send(text []byte) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(unreadFor)) // where that is possible
	if _, err := f.w.Write(text); err != nil {
		return err
	}
	return f.control.Flush()
}

// line is v in JSON, for a stream of lines.
func line(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // what is sent always marshals
		panic(err)
	}
	return append(text, '\n')
}
