package bench

import (
	"slices"
	"testing"

	"github.com/ddq-io/ddq/api/client"
)

func TestPoliciesTravelWithTheTarget(t *testing.T) {
	for _, words := range [][]string{nil, {"cap"}, {"priority", "rate"}, {"watch"}, {"all"}} {
		p, err := parsePolicies(words)
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		addr, topic, back := splitTarget(p.target("127.0.0.1:9", "bench-7"))
		if addr != "127.0.0.1:9" || topic != "bench-7" || !slices.Equal(back, p) {
			t.Errorf("%v came back as %s %s %v", words, addr, topic, back)
		}
	}
	if _, err := parsePolicies([]string{"rate", "speed"}); err == nil {
		t.Error("an unknown policy is taken")
	}
}

func TestTasksUseThePoliciesAskedFor(t *testing.T) {
	all, err := parsePolicies([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	var plain, full client.Task
	policies(nil).put(&plain, 105)
	all.put(&full, 105)
	if plain.Priority != 0 || plain.FairnessKey+plain.RateKey+plain.ConcurrencyKey+plain.OrderingKey != "" {
		t.Errorf("without policies: %+v", plain)
	}
	if full.Priority != 5 || full.FairnessKey != "5" || full.RateKey != "5" || full.ConcurrencyKey != "5" || full.OrderingKey != "105" {
		t.Errorf("with all: %+v", full)
	}
	if p := policies(nil).topic(); p.Rate != nil || p.Concurrency != nil {
		t.Errorf("a topic without policies has %+v", p)
	}
	if p := (policies{policyWatch}).topic(); p.WatchRetention == nil || p.Rate != nil {
		t.Errorf("a topic that is watched has %+v", p)
	}
	if p := all.topic(); p.Rate == nil || p.KeyRate == nil || p.Concurrency == nil || p.KeyConcurrency == nil {
		t.Errorf("a topic with all has %+v", p)
	}
}
