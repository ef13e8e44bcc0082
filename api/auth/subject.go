package auth

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Subject says which names in certificates are meant: a URI, a prefix of URIs that ends in a slash,
// or a DNS name.
type Subject string

// Check says what is wrong with a subject.
func (s Subject) Check() error {
	switch {
	case strings.Contains(string(s), ":"):
		return checkURI(string(s))
	case !dnsName(string(s)):
		return fmt.Errorf("%q is neither a URI, such as spiffe://prod/mailer, nor a DNS name", string(s))
	}
	return nil
}

// Match reports whether a name in a certificate is meant.
func (s Subject) Match(name string) bool {
	if strings.Contains(string(s), ":") && strings.HasSuffix(string(s), "/") {
		return strings.HasPrefix(name, string(s)) && len(name) > len(s)
	}
	return name == string(s)
}

// Subjects are several of them.
type Subjects []Subject

// Match reports whether a caller has shown a certificate with a name that is meant.
func (ss Subjects) Match(id *Identity) bool {
	return id.Kind == KindCertificate && slices.ContainsFunc(ss, func(s Subject) bool { return slices.ContainsFunc(id.Names, s.Match) })
}

// IdentityOf returns who has a certificate, which was verified: by the URIs in it or, without one,
// by its DNS names. The common name says nothing. ok is false when it has no name that counts.
func IdentityOf(cert *x509.Certificate) (id *Identity, ok bool) {
	id = &Identity{Kind: KindCertificate, Expires: cert.NotAfter}
	for _, u := range cert.URIs {
		if name := u.String(); checkURI(name) == nil && !strings.HasSuffix(name, "/") {
			id.Names = append(id.Names, name)
		}
	}
	if len(cert.URIs) == 0 {
		for _, name := range cert.DNSNames {
			if name = strings.ToLower(name); dnsName(name) {
				id.Names = append(id.Names, name)
			}
		}
	}
	if len(id.Names) == 0 {
		return nil, false
	}
	id.Name = id.Names[0]
	return id, true
}

// checkURI refuses what two programs could read differently.
func checkURI(text string) error {
	u, err := url.Parse(text)
	bad := err != nil || len(text) > maxSubject || u.Scheme == "" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.ContainsAny(text, "%\\?#*") || strings.Contains(u.Path, "//") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
	if bad || slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return fmt.Errorf("%q is no plain URI with a host, such as spiffe://prod/mailer; a prefix ends in a slash", text)
	}
	return nil
}

const dnsChars = "abcdefghijklmnopqrstuvwxyz0123456789-."

// dnsName reports whether text is a whole DNS name: no pattern, no address.
func dnsName(text string) bool {
	return text != "" && len(text) <= 253 && strings.Trim(text, dnsChars) == "" && !strings.Contains(text, "..") &&
		strings.ContainsAny(text, "abcdefghijklmnopqrstuvwxyz") && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".")
}
