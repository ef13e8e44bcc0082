package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/actors/fleet"
)

// What a record tells of a call.
const (
	Asked    = "asked"    // it is about to be done
	Answered = "answered" // it was done, or failed: the code says which
	Refused  = "refused"  // the caller may not
	Started  = "started"  // a server began to write here
	Cut      = "cut"      // a line before was not whole, as after a power cut; it was taken out
)

// Record is one line. Times are of the node's clock.
type Record struct {
	Seq     int64     `json:"seq"` // from 1
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Event   string    `json:"event"`
	Call    int64     `json:"call,omitempty"`   // Answered: the Seq of what was asked
	Caller  string    `json:"caller,omitempty"` // kind and name, such as token:mailer
	Token   string    `json:"token,omitempty"`  // its id
	Address string    `json:"address,omitempty"`

	Namespace string `json:"namespace,omitempty"` // of the call; none: the default one

	Method    string `json:"method,omitempty"`
	Topic     string `json:"topic,omitempty"`      // what the call is about, where its request says so in one place
	Name      string `json:"name,omitempty"`       // or its id
	RequestID string `json:"request_id,omitempty"` // of a call that failed, and of others that came with one

	Request json.RawMessage `json:"request,omitempty"` // without payloads; cut where it is long
	Code    string          `json:"code,omitempty"`    // OK, or why not
	Count   int64           `json:"count,omitempty"`   // Refused: how many since the last record of the kind, beside this one
	Prev    string          `json:"prev,omitempty"`    // hash of the record before
}

// hash is how a record is known: SHA-256 in hexadecimal digits.
type hash string

// A line is the record with its hash as the last field; the hash is of all before it.
const (
	hashField = `,"hash":"`
	lineEnd   = "\"}\n"
)

// encode returns the line of a record, and its hash.
func encode(r *Record) ([]byte, hash, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, "", err
	}
	body = body[:len(body)-1] // without the brace
	sum := hashOf(body)
	return append(append(append(body, hashField...), sum...), lineEnd...), sum, nil
}

func hashOf(body []byte) hash {
	sum := sha256.Sum256(body)
	return hash(hex.EncodeToString(sum[:]))
}

// outcome is what a record tells of a call.
func (r *Record) outcome() fleet.AuditOutcome {
	switch {
	case r.Event == Answered && r.Code == codes.OK.String():
		return fleet.AuditDone
	case r.Event == Answered:
		return fleet.AuditFailed
	}
	return outcomes[r.Event]
}

var outcomes = map[string]fleet.AuditOutcome{
	Asked: fleet.AuditAsked, Refused: fleet.AuditRefused, Started: fleet.AuditStarted, Cut: fleet.AuditCut,
}

var errForm = errors.New("it is no record")

// decode returns the record of a line, and its hash; an error says what is wrong with it.
func decode(line []byte) (r Record, sum hash, err error) {
	at := bytes.LastIndex(line, []byte(hashField))
	if at < 0 || !bytes.HasSuffix(line, []byte(lineEnd)) {
		return r, "", errForm
	}
	body, told := line[:at], hash(line[at+len(hashField):len(line)-len(lineEnd)])
	if err := json.Unmarshal(line, &r); err != nil {
		return r, "", errForm
	}
	if sum = hashOf(body); sum != told {
		return r, "", errors.New("it was changed: its hash is another one")
	}
	return r, sum, nil
}
