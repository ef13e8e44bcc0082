package auth

import (
	"slices"
	"strings"
	"testing"
)

// methods are all methods that have a rule.
func methods() (all []string) {
	for service, rules := range services {
		for _, r := range rules {
			all = append(all, "/"+service+"/"+r.Method)
		}
	}
	return all
}

func rules(t *testing.T) *Rules {
	t.Helper()
	r, err := RulesFor(methods())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMethodsAndRulesBelongTogether(t *testing.T) {
	all := methods()
	for _, more := range []string{"/ddq.v1.AdminService/Nothing", "/other.Service/Enqueue", "/ddq.v1.AdminService/", "x"} {
		if _, err := RulesFor(append(slices.Clone(all), more)); err == nil || !strings.Contains(err.Error(), "no rule") {
			t.Errorf("%q: %v", more, err)
		}
	}
	for i := range all {
		without := slices.Delete(slices.Clone(all), i, i+1)
		alone := !slices.ContainsFunc(without, func(m string) bool { return strings.HasPrefix(m, all[i][:strings.LastIndex(all[i], "/")+1]) })
		if _, err := RulesFor(without); err == nil && !alone {
			t.Errorf("without %s: its rule is not missed", all[i])
		}
	}
	if rules(t).Of("/ddq.v1.AdminService/Nothing") != nil {
		t.Error("a method that is not served has a rule")
	}
}

func TestEveryRuleIsWhole(t *testing.T) {
	for service, all := range services {
		for i, r := range all {
			free := r.Where == Public || r.Where == Anyone
			if r.Where == 0 || free != (r.Verbs == 0) || slices.ContainsFunc(all[:i], func(o Rule) bool { return o.Method == r.Method }) {
				t.Errorf("%s: %+v", service, r)
			}
		}
	}
}

// Nobody who has not the verb of a rule gets through, whatever else they have, and nobody
// without a principal.
func TestRulesNeedTheirVerb(t *testing.T) {
	for _, method := range methods() {
		r := rules(t).Of(method)
		if r.Where != Public && (r.Allow(nil, "mail") || r.Allow(nil, "")) {
			t.Errorf("%s: a caller without a principal is let through", method)
		}
		for _, topic := range []string{"", "mail", "sms"} {
			for v := Verbs(1); v < endOfVerbs; v <<= 1 {
				all := &Principal{Namespace: DefaultNamespace, Grants: Grants{{v, All, All}}}
				some := &Principal{Namespace: DefaultNamespace, Grants: Grants{{v, DefaultNamespace, "mail*"}}}
				other := &Principal{Namespace: "other", Grants: Grants{{v, DefaultNamespace, All}}}
				wantAll, wantSome := allowed(r, v, topic)
				if got := r.Allow(all, topic); got != wantAll {
					t.Errorf("%s on %q: %v on everything: %v", method, topic, v, got)
				}
				if got := r.Allow(some, topic); got != wantSome {
					t.Errorf("%s on %q: %v on mail*: %v", method, topic, v, got)
				}
				if got, free := r.Allow(other, topic), r.Verbs == 0; got != free {
					t.Errorf("%s on %q: %v in another namespace: %v", method, topic, v, got)
				}
			}
		}
	}
}

// allowed is what a rule means, for a grant for everything and for one for mail*.
func allowed(r *Rule, v Verbs, topic string) (all, some bool) {
	if r.Where == Public || r.Where == Anyone {
		return true, true
	}
	has := r.Verbs&v != 0
	switch r.Where {
	case Name, Hello:
		return has && topic != "", has && topic == "mail"
	case Topic:
		return has, has && topic == "mail"
	case Shown:
		return has, has && topic != "sms"
	case Whole:
		return has, false
	case Each, Namespace:
		return has, has
	}
	return has, false
}

func TestRootIsNoNode(t *testing.T) {
	for _, method := range methods() {
		if r := rules(t).Of(method); strings.Contains(method, "PeerService") {
			if r.Allow(Root(), "") || r.Allow(Local(), "") || !r.Allow(Fellow("a"), "") {
				t.Errorf("%s: only nodes", method)
			}
		} else if r.Where != Public && r.Where != Anyone && r.Where != Hello && r.Allow(Fellow("a"), "mail") {
			t.Errorf("%s: a node may", method)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	r, err := RulesFor(methods())
	if err != nil {
		b.Fatal(err)
	}
	p := &Principal{Namespace: DefaultNamespace, Grants: Grants{{Read, DefaultNamespace, "sms"}, {Enqueue, DefaultNamespace, "mail*"}}}
	b.ReportAllocs()
	for b.Loop() {
		if !r.Of("/ddq.v1.DelayQueueService/Enqueue").Allow(p, "mail-daily") {
			b.Fatal("refused")
		}
	}
}
