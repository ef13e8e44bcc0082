package client

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client/journal"
)

// everything is a snapshot with every field set.
func everything() Snapshot {
	at := func(s int) time.Time { return time.UnixMilli(1_900_000_000_250 + int64(s)*1000).UTC() }
	return Snapshot{
		Topic: "mail", ID: "a", State: StateDead, Due: at(0), CreatedAt: at(1), RetryCount: 2, MaxRetries: 3,
		Payload: []byte("a<b>\x00"), Attributes: map[string]string{"tenant": "acme"}, Expires: at(2), VisibilityTimeout: 90 * time.Second,
		HandlerTimeout: time.Minute, Backoff: &Backoff{Kind: BackoffExponential, Base: time.Second, Max: time.Minute, JitterPercent: 10},
		Priority: 4, TaskKeys: TaskKeys{"idem", "fair", 5, "rate", "cap", "order"},
		Schedule: "nightly", Recipient: "ada", RecipientData: []byte("x"), Occurrence: at(9), Cause: &Cause{"orders", "17"}, Traceparent: "00-1-2-01", Tracestate: "a=1",
		WaitingFor: WaitingForOrder, NextToken: at(3), LastError: "no", DeadReason: DeadReasonPermanent, FinishedAt: at(4),
		Worker: "w", HoldDeadline: at(5), Version: 6, CancelRequested: true, Result: []byte{0xff, 0},
		Attempts: []Attempt{{Number: 1, Outcome: AttemptAcked, Worker: "w", Node: "n", Due: at(5), Started: at(6), Ended: at(7), Error: "e", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"}, {Number: 2, Started: at(8)}},
		Journal:  []journal.Entry{{Name: "charge", Size: 4, Kept: at(10), Value: []byte("paid")}, {Name: "scan", Size: 2, Kept: at(11), Value: []byte{0xff, 0}}, {Name: "masked", Size: 9, Kept: at(12)}},
	}
}

func TestSnapshotSurvivesJSON(t *testing.T) {
	full := everything()
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the sample lacks %s", v.Type().Field(i).Name)
		}
	}
	for _, want := range []Snapshot{full, {Payload: []byte{}}} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := everything() // what is absent becomes zero
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v\nfrom %s", got, want, b)
		}
	}
}

func TestSnapshotInJSON(t *testing.T) {
	b, err := json.Marshal(everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"topic":"mail","id":"a","state":"dead","execute_time":"2030-03-17T17:46:40.250Z"`, `"payload":"a\u003cb\u003e\u0000"`,
		`"visibility_timeout_ms":90000,"handler_timeout_ms":60000,"backoff":{"kind":"exponential","base_ms":1000,"max_ms":60000,"jitter_percent":10}`,
		`"ordering_key":"order","schedule":"nightly","occurrence_time":"2030-03-17T17:46:49.250Z","recipient":"ada","recipient_data":"x","cause":{"topic":"orders","id":"17"},"traceparent":"00-1-2-01","tracestate":"a=1","waiting_for":"order"`, `"result_base64":"/wA="`, `"journal":[{"name":"charge","size":4,"kept_at":"2030-03-17T17:46:50.250Z","value":"paid"},`, `{"number":2,"outcome":"running","started_at":"`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nlacks %s", b, want)
		}
	}
}

func TestSnapshotFromBadJSON(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                         "cannot unmarshal",
		`{"state":"lost"}`:           `state: no State is called "lost"`,
		`{"state":3}`:                "state: ",
		`{"execute_time":"soon"}`:    "execute_time: ",
		`{"backoff":{"kind":"odd"}}`: "backoff: kind: no BackoffKind",
		`{"result_base64":"?"}`:      "result_base64: ",
	} {
		if err := json.Unmarshal([]byte(text), new(Snapshot)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
	if err := json.Unmarshal([]byte(`{"id":"a","of_a_newer_version":[1]}`), new(Snapshot)); err != nil {
		t.Errorf("a name that is not known: %v", err)
	}
}
