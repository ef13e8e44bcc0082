package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"
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

// messageText is a message of the API in JSON.
func messageText(m proto.Message) []byte {
	text, err := write.Marshal(m)
	if err != nil { // the server made it
		panic(err)
	}
	return text
}

// messages is how a watch is written whose events, or lines, are whole messages of the API.
type messages struct {
	style
	lines bool
}

func messagesIn(asLines bool) messages {
	if asLines {
		return messages{lines{}, true}
	}
	return messages{events{}, false}
}

// message is an event of that name, or a line. id is that of the event; empty: it has none.
func (f messages) message(event, id string, m proto.Message) []byte {
	text := messageText(m)
	if f.lines {
		return append(text, '\n')
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return []byte(id + "event: " + event + "\ndata: " + string(text) + "\n\n")
}
