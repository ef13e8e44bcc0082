package auth

import "testing"

func TestGrantsAreOfTheirNamespace(t *testing.T) {
	grants := Grants{{Read, "acme", "mail*"}, {Work, DefaultNamespace, All}}
	for _, c := range []struct {
		namespace, topic string
		verb             Verbs
		want             bool
	}{
		{"acme", "mail", Read, true},
		{"acme", "acme/mail", Read, true}, // its full name
		{"acme", "zebra/mail", Read, false},
		{"acme", "sms", Read, false},
		{"acme", "mail", Work, false},
		{DefaultNamespace, "mail", Work, true},
		{DefaultNamespace, "mail", Read, false},
		{"zebra", "mail", Read, false},
	} {
		p := (&Principal{Namespace: DefaultNamespace, Grants: grants}).In(c.namespace)
		if got := p.Allow(c.verb, c.topic); got != c.want {
			t.Errorf("%s on %s in %s: %v", c.verb, c.topic, c.namespace, got)
		}
	}
	p := &Principal{Namespace: DefaultNamespace, Grants: grants}
	if !p.Enters("acme") || !p.Enters(DefaultNamespace) || p.Enters("zebra") || !Root().Enters("zebra") {
		t.Error("who may do nothing in a namespace enters it, or who may does not")
	}
	if p.In(DefaultNamespace) != p || p.In("acme").Namespace != "acme" || p.Namespace != DefaultNamespace {
		t.Error("a principal in another namespace is not a copy")
	}
}

func TestTheNamespaceOfGrants(t *testing.T) {
	for want, sets := range map[string][]Grants{
		DefaultNamespace: {nil, {{Read, DefaultNamespace, All}}, {{Read, All, All}}, {{Read, "acme", All}, {Read, "zebra", All}}},
		"acme":           {{{Read, "acme", All}}, {{Read, All, All}, {Work, "acme", "mail"}}},
	} {
		for _, grants := range sets {
			if got := grants.Home(); got != want {
				t.Errorf("%v: %s, want %s", grants, got, want)
			}
		}
	}
}
