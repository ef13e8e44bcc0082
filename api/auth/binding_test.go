package auth

import (
	"crypto/x509"
	"net/url"
	"strings"
	"testing"
)

var worker = Grants{{Work, DefaultNamespace, "mail"}}

func TestBindingsThatCannotBe(t *testing.T) {
	good := Binding{Name: "ops", Certificate: "spiffe://prod/mail/", Grants: worker}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(b *Binding){
		"no name":       func(b *Binding) { b.Name = "" },
		"name":          func(b *Binding) { b.Name = "a/b" },
		"long name":     func(b *Binding) { b.Name = strings.Repeat("a", 129) },
		"no grants":     func(b *Binding) { b.Grants = nil },
		"node":          func(b *Binding) { b.Grants = Grants{{Node, All, All}} },
		"bad topics":    func(b *Binding) { b.Grants = Grants{{Work, DefaultNamespace, "*mail"}} },
		"nobody":        func(b *Binding) { b.Certificate = "" },
		"two":           func(b *Binding) { b.Issuer = "https://i.test" },
		"traversal":     func(b *Binding) { b.Certificate = "spiffe://prod/mail/../sms" },
		"escapes":       func(b *Binding) { b.Certificate = "spiffe://prod/mail%2f" },
		"no host":       func(b *Binding) { b.Certificate = "spiffe:///mail/" },
		"empty part":    func(b *Binding) { b.Certificate = "spiffe://prod//mail" },
		"star":          func(b *Binding) { b.Certificate = "spiffe://prod/*" },
		"query":         func(b *Binding) { b.Certificate = "spiffe://prod/a?b" },
		"wildcard name": func(b *Binding) { b.Certificate = "*.example.com" },
		"address":       func(b *Binding) { b.Certificate = "10.0.0.1" },
		"e-mail":        func(b *Binding) { b.Certificate = "a@example.com" },
		"upper case":    func(b *Binding) { b.Certificate = "Mailer" },
		"plain issuer": func(b *Binding) {
			*b = Binding{Name: "x", Issuer: "http://i.test", Claim: "sub", Value: "x", Grants: worker}
		},
		"claim with no name":  func(b *Binding) { *b = Binding{Name: "x", Issuer: "https://i.test", Value: "x", Grants: worker} },
		"claim with no value": func(b *Binding) { *b = Binding{Name: "x", Issuer: "https://i.test", Claim: "sub", Grants: worker} },
	} {
		b := good
		change(&b)
		if b.Check() == nil {
			t.Errorf("%s: it can: %+v", what, b)
		}
	}
}

func cert(t *testing.T, uris []string, names ...string) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{DNSNames: names}
	c.Subject.CommonName = "mailer.example.com"
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return c
}

func TestNamesInCertificates(t *testing.T) {
	for what, c := range map[string]struct {
		uris, names []string
		binding     string
		want        bool
	}{
		"whole":               {[]string{"spiffe://prod/mail/a"}, nil, "spiffe://prod/mail/a", true},
		"under a prefix":      {[]string{"spiffe://prod/mail/a"}, nil, "spiffe://prod/mail/", true},
		"deeper":              {[]string{"spiffe://prod/mail/a/b"}, nil, "spiffe://prod/mail/", true},
		"no slash":            {[]string{"spiffe://prod/mailer"}, nil, "spiffe://prod/mail", false},
		"another":             {[]string{"spiffe://prod/mailer"}, nil, "spiffe://prod/mail/", false},
		"host":                {[]string{"spiffe://production/mail/a"}, nil, "spiffe://prod/mail/", false},
		"the prefix itself":   {[]string{"spiffe://prod/mail/"}, nil, "spiffe://prod/mail/", false},
		"traversal":           {[]string{"spiffe://prod/mail/../sms"}, nil, "spiffe://prod/mail/", false},
		"escaped":             {[]string{"spiffe://prod/mail/%2e%2e/sms"}, nil, "spiffe://prod/mail/", false},
		"one of two":          {[]string{"spiffe://prod/sms/a", "spiffe://prod/mail/a"}, nil, "spiffe://prod/mail/a", true},
		"DNS":                 {nil, []string{"Mailer.example.com"}, "mailer.example.com", true},
		"part of a DNS name":  {nil, []string{"mailer.example.com.evil"}, "mailer.example.com", false},
		"wildcard":            {nil, []string{"*.example.com"}, "a.example.com", false},
		"DNS beside a URI":    {[]string{"spiffe://prod/sms/a"}, []string{"mailer.example.com"}, "mailer.example.com", false},
		"common name":         {nil, nil, "mailer.example.com", false},
		"DNS name with a NUL": {nil, []string{"mailer.example.com\x00.evil"}, "mailer.example.com", false},
	} {
		b := &Binding{Name: "x", Certificate: c.binding, Grants: worker}
		if err := b.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		id, ok := IdentityOf(cert(t, c.uris, c.names...))
		if got := ok && b.Matches(id); got != c.want {
			t.Errorf("%s: %v, of %+v", what, got, id)
		}
	}
}

func TestClaimsOfIssuers(t *testing.T) {
	b := &Binding{Name: "ops", Issuer: "https://i.test", Claim: "groups", Value: "ops", Grants: worker}
	of := func(issuer, claim string, values ...string) *Identity {
		return &Identity{Kind: KindIssuer, Issuer: issuer, Claims: map[string][]string{claim: values}}
	}
	for what, c := range map[string]struct {
		id   *Identity
		want bool
	}{
		"one of the list": {of("https://i.test", "groups", "dev", "ops"), true},
		"other values":    {of("https://i.test", "groups", "dev-ops"), false},
		"other claim":     {of("https://i.test", "roles", "ops"), false},
		"other issuer":    {of("https://j.test", "groups", "ops"), false},
		"longer issuer":   {of("https://i.test/", "groups", "ops"), false},
		"no claims":       {of("https://i.test", "groups"), false},
		"a certificate":   {&Identity{Kind: KindCertificate, Names: []string{"ops"}}, false},
	} {
		if got := b.Matches(c.id); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	more := &Binding{Name: "all", Issuer: "https://i.test", Claim: "groups", Value: "dev", Grants: Grants{{Read, DefaultNamespace, All}}}
	p := Bindings{b, more}.Principal(of("https://i.test", "groups", "dev", "ops"))
	if len(p.Grants) != 2 || !p.Allow(Work, "mail") || !p.Allow(Read, "sms") || p.Allow(Work, "sms") {
		t.Errorf("grants %v", p.Grants)
	}
	if p := (Bindings{b}).Principal(of("https://i.test", "groups")); len(p.Grants) != 0 {
		t.Errorf("without a binding: %v", p.Grants)
	}
}
