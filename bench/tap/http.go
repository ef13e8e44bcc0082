package tap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/ledger"
)

// ErrLost is what a request fails with whose answer was lost on purpose.
var ErrLost = errors.New("the answer was lost")

// The verbs of requests that workers make.
const (
	retrieves = "retrieve"
	settles   = "settle"
)

// Transport makes requests and writes down what workers receive and settle by REST. It is safe
// for concurrent use.
type Transport struct {
	next http.RoundTripper
	log  Log
	lose func() bool

	mu     sync.Mutex
	topics map[string]*scribe // by name; guarded by mu
}

// NewTransport returns a tap on next. lose is asked of each answer whether it is lost: nobody gets
// it then. Of settlements the ledger has no more than a worker knows; what was delivered is in it,
// as the hold is there although nobody has it.
func NewTransport(next http.RoundTripper, log Log, lose func() bool) *Transport {
	return &Transport{next: next, log: log, lose: lose, topics: map[string]*scribe{}}
}

// RoundTrip writes down settlements before they are sent, and deliveries and answers before
// anybody else sees them.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	topic, verb := asks(r)
	if verb != retrieves && verb != settles {
		return t.next.RoundTrip(r)
	}
	s := t.scribe(topic)
	var calls []ledger.Event
	if verb == settles {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		ask := new(ddqv1.SettleRequest)
		if protojson.Unmarshal(body, ask) == nil { // else it is for the server to refuse
			calls = s.settlements(ask)
			t.log.Append(calls...)
		}
	}
	answer, text, err := t.whole(r)
	lost := err == nil && t.lose()
	if lost && verb == settles {
		err = ErrLost
	}
	if err != nil {
		t.log.Append(unknown(calls, err.Error())...)
		return nil, err
	}
	events, err := s.heard(answer.StatusCode, text, verb, calls)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	t.log.Append(events...)
	if lost {
		return nil, ErrLost
	}
	return answer, nil
}

// Settles reports whether a request has settlements.
func Settles(r *http.Request) bool {
	_, verb := asks(r)
	return verb == settles
}

// asks is the topic and the verb of a request of a worker.
func asks(r *http.Request) (topic, verb string) {
	topic, verb, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/topics/"), ":")
	return topic, verb
}

func (t *Transport) scribe(topic string) *scribe {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.topics[topic]
	if s == nil {
		s = newScribe(topic, t.log)
		t.topics[topic] = s
	}
	return s
}

// whole makes a request and reads all of its answer, which can be read once more.
func (t *Transport) whole(r *http.Request) (answer *http.Response, text []byte, err error) {
	if answer, err = t.next.RoundTrip(r); err != nil {
		return nil, nil, err
	}
	text, err = io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return answer, text, nil
}

// heard is what an answer says.
func (t *scribe) heard(code int, text []byte, verb string, calls []ledger.Event) ([]ledger.Event, error) {
	switch {
	case code != http.StatusOK:
		return failed(calls, text), nil
	case verb == retrieves:
		said := new(ddqv1.RetrieveResponse)
		err := protojson.Unmarshal(text, said)
		return t.deliveries(said.GetDeliveries()), err
	}
	said := new(ddqv1.SettleResponse)
	err := protojson.Unmarshal(text, said)
	return outcomes(calls, t.named(said.GetResults())), err
}

// failed are the answers to calls whose request was refused as a whole.
func failed(calls []ledger.Event, text []byte) []ledger.Event {
	var problem struct{ Code, Reason string }
	if json.Unmarshal(text, &problem) != nil || !refuses(problem.Reason) {
		return unknown(calls, problem.Code+" "+problem.Reason)
	}
	for i, call := range calls {
		calls[i] = answerTo(call)
		calls[i].Result, calls[i].Reason = ledger.Refused, problem.Reason
	}
	return calls
}
