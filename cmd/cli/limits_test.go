package cli

import (
	"strings"
	"testing"
)

func TestLimitsOfATopic(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	created := ddq(exitOK, "topic", "create", "mail", "--rate", "1/h", "--burst", "2", "--key-rate", "20/1m", "--key-rate-window",
		"--concurrency", "5", "--key-concurrency", "1", "-o", "json")
	for _, want := range []string{
		`"rate":{"kind":"token_bucket","count":1,"period_ms":3600000,"burst":2}`,
		`"key_rate":{"kind":"sliding_window","count":20,"period_ms":60000}`,
		`"concurrency":5,"key_concurrency":1,`,
	} {
		if !strings.Contains(created.out, want) {
			t.Errorf("%s lacks %s", created.out, want)
		}
	}
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "n", "--count", "3", "--rate-key", "acme", "--concurrency-key", "acme")
	ddq(exitOK, "work", "--topic", "mail", "--count", "2", "--concurrency", "2", "--exec", "true")
	waiting := ddq(exitOK, "task", "list", "--topic", "mail", "-o", "json").out
	if !strings.Contains(waiting, `"waiting_for":"rate","next_token_time":"`) {
		t.Errorf("no task says until when it waits: %s", waiting)
	}
	if !strings.Contains(waiting, `"rate_key":"acme","concurrency_key":"acme"`) {
		t.Errorf("no task says its keys: %s", waiting)
	}
	if set := ddq(exitOK, "topic", "set", "mail", "--rate", "none", "--over-limit", "dead_letter", "-o", "json"); strings.Contains(set.out, `"rate":`) || !strings.Contains(set.out, `"over_limit":"dead_letter"`) {
		t.Errorf("topic set = %s", set.out)
	}
	for _, args := range [][]string{
		{"topic", "set", "mail", "--burst", "2"},
		{"topic", "set", "mail", "--key-rate", "1/s", "--key-rate-window", "--key-burst", "2"},
		{"topic", "set", "mail", "--over-limit", "drop"},
	} {
		ddq(2, args...)
	}
}
