package tap

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// tripper answers every request alike.
type tripper struct {
	code int
	text string
	sent string // the body of the last request
}

func (t *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	t.sent = string(body)
	return &http.Response{StatusCode: t.code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(t.text))}, err
}

// TestWhatRESTSaysIsWrittenDown: what is received, what is settled, and what becomes of that. Both
// sides get the bytes that the other one sent, unless the answer is lost.
func TestWhatRESTSaysIsWrittenDown(t *testing.T) {
	const all = `{"acks":[{"task_id":"t","hold_token":"Cg==","result":"AP8="}],"nacks":[{"task_id":"u","hold_token":"Cw==","error":"\u0000","permanent":true}],` +
		`"extends":[{"task_id":"v","hold_token":"DA=="}],"checkpoints":[{"task_id":"v","hold_token":"DA==","name":"charge"}]}`
	calls := []string{"call ack t/0a ", "call nack u/0b ", "call extend v/0c ", "call checkpoint v/0ccharge "}
	for _, c := range []struct {
		name, path, body string
		code             int
		answer           string
		lost             bool
		want             []string
	}{
		{
			"taken", "/v1/topics/mail:retrieve", `{}`, 200, `{"deliveries":[{"task":{"id":"t","topic":"mail"},"hold_token":"Cg==","hold_ms":"2000"}]}`, false,
			[]string{"delivered  t/0a "},
		},
		{"taken by nobody", "/v1/topics/mail:retrieve", `{}`, 200, `{"deliveries":[{"task":{"id":"t"},"hold_token":"Cg=="}]}`, true, []string{"delivered  t/0a "}},
		{"not taken", "/v1/topics/mail:retrieve", `{}`, 503, `{"reason":"STARTING"}`, false, nil},
		{
			"settled", "/v1/topics/mail:settle", all, 200, `{"results":[{"task_id":"t","hold_token":"Cg==","already":true},{"task_id":"u","hold_token":"Cw==","error":{"code":9,"reason":"HOLD_LOST"}}]}`, false,
			append(slices.Clone(calls), "answer ack t/0a already", "answer nack u/0b refusedHOLD_LOST", "answer extend v/0c ok", "answer checkpoint v/0ccharge ok"),
		},
		{
			"settled, and nobody knows", "/v1/topics/mail:settle", all, 200, `{}`, true,
			append(slices.Clone(calls), "answer ack t/0a unknownthe answer was lost", "answer nack u/0b unknownthe answer was lost", "answer extend v/0c unknownthe answer was lost", "answer checkpoint v/0ccharge unknownthe answer was lost"),
		},
		{
			"refused as a whole", "/v1/topics/mail:settle", `{"acks":[{"task_id":"t","hold_token":"Cg=="}]}`, 503, `{"code":"UNAVAILABLE","reason":"STORE_DOWN"}`, false,
			[]string{"call ack t/0a ", "answer ack t/0a refusedSTORE_DOWN"},
		},
		{
			"an error of what lies between", "/v1/topics/mail:settle", `{"acks":[{"task_id":"t","hold_token":"Cg=="}]}`, 502, `<html>`, false,
			[]string{"call ack t/0a ", "answer ack t/0a unknown "},
		},
		{"no settlements", "/v1/topics/mail:settle", `{"acks":7}`, 400, `{"reason":"MALFORMED"}`, false, nil},
		{"another call", "/v1/topics/mail:count", `{}`, 200, `{}`, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, server := &tape{}, &tripper{code: c.code, text: c.answer}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://ddq"+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := NewTransport(server, p, func() bool { return c.lost }).RoundTrip(r)
			switch {
			case c.lost && c.name != "another call":
				if !errors.Is(err, ErrLost) {
					t.Errorf("%v, want %v", err, ErrLost)
				}
			case err != nil:
				t.Fatal(err)
			default:
				text, err := io.ReadAll(answer.Body)
				if err := errors.Join(err, answer.Body.Close()); err != nil || string(text) != c.answer {
					t.Errorf("the answer is %q, want %q: %v", text, c.answer, err)
				}
			}
			if server.sent != c.body {
				t.Errorf("the server got %q, want %q", server.sent, c.body)
			}
			if !slices.Equal(p.lines, c.want) {
				t.Errorf("it is\n%q, want\n%q", p.lines, c.want)
			}
		})
	}
}
