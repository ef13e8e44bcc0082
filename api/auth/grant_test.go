package auth

import (
	"strings"
	"testing"
)

// matches is Pattern.Match as its comment has it, in another way.
func matches(pattern, topic string) bool {
	if topic == "" {
		return false
	}
	if n := len(pattern); n > 0 && pattern[n-1] == '*' {
		return len(topic) >= n-1 && topic[:n-1] == pattern[:n-1]
	}
	return pattern == topic
}

// words are all texts of up to n letters of the alphabet.
func words(alphabet string, n int) []string {
	all, last := []string{""}, []string{""}
	for range n {
		var next []string
		for _, w := range last {
			for _, c := range alphabet {
				next = append(next, w+string(c))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

func patterns() []Pattern {
	var all []Pattern
	for _, w := range words("ab", 3) {
		if w != "" {
			all = append(all, Pattern(w))
		}
		all = append(all, Pattern(w+"*"))
	}
	return all
}

func TestPatternsMatchNamesAndPrefixes(t *testing.T) {
	for _, p := range patterns() {
		for _, topic := range words("ab", 4) {
			if got, want := p.Match(topic), matches(string(p), topic); got != want {
				t.Errorf("%q matches %q: %v, want %v", p, topic, got, want)
			}
		}
	}
}

func TestPatternCoversWhatItMatches(t *testing.T) {
	topics := words("ab", 5)
	for _, p := range patterns() {
		for _, q := range patterns() {
			all := true
			for _, topic := range topics {
				all = all && (!q.Match(topic) || p.Match(topic))
			}
			if got := p.covers(q); got != all {
				t.Errorf("%q covers %q: %v, want %v", p, q, got, all)
			}
		}
	}
}

func TestBadGrantsAreRefused(t *testing.T) {
	for _, text := range []string{
		"", ":mail", "read:", "read:*mail", "read:ma*il", "read:**", "read:a/b", "read:a b", "read:a\x00", "node:*", "nobody:*",
		"read,:mail", "READ:mail", "read:" + strings.Repeat("a", maxPattern+1),
	} {
		if g, err := ParseGrant(text); err == nil {
			t.Errorf("%q is the grant %v", text, g)
		}
	}
	for _, g := range []Grant{
		{0, DefaultNamespace, All}, {Node, DefaultNamespace, All}, {endOfVerbs, DefaultNamespace, All}, {Read, "", All}, {Read, "Acme", All}, {Read, "-a", All}, {Read, strings.Repeat("a", 64), All},
	} {
		if g.Check() == nil {
			t.Errorf("%+v is accepted", g)
		}
	}
}

func TestGrantsAreParsed(t *testing.T) {
	for text, want := range map[string]Grant{
		"producer":           {Enqueue, DefaultNamespace, All},
		"producer,read:mail": {Enqueue | Read, DefaultNamespace, "mail"},
		"worker:mail*":       {Work, DefaultNamespace, "mail*"},
		"viewer":             {Read, DefaultNamespace, All},
		"operator":           {Read | Operate, DefaultNamespace, All},
		"admin:mail*":        {Enqueue | Work | Read | Payload | Operate | Admin, DefaultNamespace, "mail*"},
		"auditor":            {Read | Audit, All, All},
		"root":               {grantable, All, All},
	} {
		if got, err := ParseGrant(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// Every answer of Grants follows from those of single grants and topics.
func TestGrantsAllowWhatOneOfThemAllows(t *testing.T) {
	gs := Grants{{Read, DefaultNamespace, "a*"}, {Work, All, "b"}, {Admin | Read, All, All}}
	for v := Verbs(1); v < endOfVerbs; v <<= 1 {
		for _, ns := range []string{DefaultNamespace, "other"} {
			for _, topic := range []string{"", "a", "ab", "b", "c"} {
				want := topic != "" && (v == Read && ns == DefaultNamespace && topic[0] == 'a' || v == Work && topic == "b" || v == Admin || v == Read)
				if got := gs.Allow(v, ns, topic); got != want {
					t.Errorf("%v on %q in %s: %v, want %v", v, topic, ns, got, want)
				}
			}
		}
	}
	for v, want := range map[Verbs]bool{Read: true, Admin: true, Work: false, Enqueue: false} {
		if got := gs.AllowFleet(v); got != want {
			t.Errorf("fleet: %v: %v", v, got)
		}
		if got := gs.AllowAll(v, "other"); got != want {
			t.Errorf("all: %v: %v", v, got)
		}
	}
	if !gs.AllowSome(Work, "other") || gs.AllowSome(Enqueue, "other") {
		t.Error("some")
	}
	if some := (Grants{{Read, DefaultNamespace, All}}); some.AllowFleet(Read) || !some.AllowAll(Read, DefaultNamespace) || some.AllowAll(Read, "other") {
		t.Error("a grant in one namespace reaches beyond it")
	}
}

func TestGrantsCoverOthers(t *testing.T) {
	own := Grants{{Read | Work, DefaultNamespace, "mail*"}, {Enqueue, DefaultNamespace, All}}
	for text, want := range map[string]bool{
		"read:mail": true, "read,work:mail*": true, "enqueue,read:mail-x": true, "enqueue": true,
		"read": false, "read:sms": false, "read,operate:mail": false, "admin:mail": false, "root": false, "read:mai*": false,
	} {
		g, err := ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := own.Cover(Grants{g}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if root := Root(); !root.Grants.Cover(own) || own.Cover(root.Grants) || root.Grants.AllowFleet(Node) {
		t.Error("root has everything but the node verb")
	}
}
