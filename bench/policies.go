package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// policies are what every task of a run uses, to see what that costs. Limits are
// set where they are asked for each delivery and never in the way.
type policies []string

// policyWords are those that there are, in the order in which they are told.
var policyWords = policies{"priority", "fairness", "rate", "cap", "order"}

// policyWatch is one more, which has nothing to do with deliveries: what happens to the
// tasks is kept. It is no part of "all".
const policyWatch = "watch"

// policyKeys is how many keys of a kind the tasks of a run share, and orderingKeys how
// many of those that let one task at a time go.
const (
	policyKeys   = 100
	orderingKeys = 10_000
)

// parsePolicies checks words; "all" stands for every one.
func parsePolicies(words []string) (policies, error) {
	if slices.Contains(words, "all") {
		return policyWords, nil
	}
	for _, w := range words {
		if w != policyWatch && !slices.Contains(policyWords, w) {
			return nil, fmt.Errorf("--policies has %q, want all, or some of %s, %s", w, strings.Join(policyWords, ", "), policyWatch)
		}
	}
	return words, nil
}

func (p policies) has(word string) bool { return slices.Contains(p, word) }

// topic returns the policy of the run's topic.
func (p policies) topic() client.Policy {
	policy := client.Policy{VisibilityTimeout: new(visibilityTimeout)}
	if p.has("rate") {
		rate := &client.Rate{Count: 1_000_000, Period: time.Second, Burst: 100_000}
		policy.Rate, policy.KeyRate = rate, rate
	}
	if p.has("cap") {
		policy.Concurrency, policy.KeyConcurrency = new(100_000), new(100_000)
	}
	if p.has(policyWatch) {
		policy.WatchRetention, policy.WatchMax = new(time.Hour), new(10_000_000)
	}
	return policy
}

// put gives the task of the index what it uses.
func (p policies) put(t *client.Task, index int) {
	key := strconv.Itoa(index % policyKeys)
	if p.has("priority") {
		t.Priority = index % 10
	}
	if p.has("fairness") {
		t.FairnessKey = key
	}
	if p.has("rate") {
		t.RateKey = key
	}
	if p.has("cap") {
		t.ConcurrencyKey = key
	}
	if p.has("order") {
		t.OrderingKey = strconv.Itoa(index % orderingKeys)
	}
}

// target and its inverse keep the policies of a run where the worker process
// finds them as well.
func (p policies) target(addr, topic string) string {
	return addr + "/" + topic + "?" + strings.Join(p, ",")
}

func splitTarget(target string) (addr, topic string, p policies) {
	addr, rest, _ := strings.Cut(target, "/")
	topic, words, _ := strings.Cut(rest, "?")
	if words != "" {
		p = strings.Split(words, ",")
	}
	return addr, topic, p
}
