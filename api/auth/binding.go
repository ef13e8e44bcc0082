package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Binding gives grants to callers that are known by something else than a token of ddq: by a
// name in their certificate, or by a claim in a token of an issuer. It has one of the two.
type Binding struct {
	Name string `json:"name"`

	// Certificate is a Subject.
	Certificate string `json:"certificate,omitzero"`

	// Issuer is the URL of who signed the token, Claim the name of a claim of it, and Value
	// what the claim is or has among its texts.
	Issuer string `json:"issuer,omitzero"`
	Claim  string `json:"claim,omitzero"`
	Value  string `json:"value,omitzero"`

	Grants    Grants    `json:"grants"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// Bounds of what a binding has.
const (
	maxSubject  = 2048
	bindingName = "abcdefghijklmnopqrstuvwxyz0123456789-._"
)

// Identity is what a caller has shown to be, before anything is known of what it may do.
type Identity struct {
	Kind    Kind // KindCertificate or KindIssuer
	Name    string
	Expires time.Time

	Names []string // of a certificate

	Issuer string              // of a token
	Claims map[string][]string // the texts in a token, by claim
	Key    [32]byte            // thumbprint of the key that signed a token
}

// Check says what is wrong with a binding.
func (b *Binding) Check() error {
	switch {
	case b.Name == "" || len(b.Name) > maxName || strings.Trim(b.Name, bindingName) != "":
		return fmt.Errorf("the name of a binding is 1 to %d of a-z, 0-9, -, . and _", maxName)
	case len(b.Grants) == 0:
		return errors.New("no grants: a binding that allows nothing")
	case len(b.Grants) > maxGrants:
		return fmt.Errorf("more than %d grants", maxGrants)
	}
	for _, g := range b.Grants {
		if err := g.Check(); err != nil {
			return err
		}
	}
	return b.checkSubject()
}

func (b *Binding) checkSubject() error {
	byClaim := b.Issuer != "" || b.Claim != "" || b.Value != ""
	switch {
	case byClaim == (b.Certificate != ""):
		return errors.New("a binding is for a name in certificates, or for a claim of an issuer")
	case byClaim:
		return b.checkClaim()
	}
	return Subject(b.Certificate).Check()
}

func (b *Binding) checkClaim() error {
	u, err := url.Parse(b.Issuer)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || len(b.Issuer) > maxSubject:
		return fmt.Errorf("issuer %q is no https URL", b.Issuer)
	case b.Claim == "" || b.Value == "" || len(b.Claim) > maxName || len(b.Value) > maxSubject:
		return fmt.Errorf("a claim has a name of 1 to %d bytes and a value of 1 to %d", maxName, maxSubject)
	case !utf8.ValidString(b.Claim) || !utf8.ValidString(b.Value):
		return errors.New("a claim and its value are UTF-8")
	}
	return nil
}

// Matches reports whether a binding is for a caller.
func (b *Binding) Matches(id *Identity) bool {
	switch {
	case id.Kind == KindCertificate && b.Certificate != "":
		return slices.ContainsFunc(id.Names, Subject(b.Certificate).Match)
	case id.Kind == KindIssuer && b.Issuer != "":
		return b.Issuer == id.Issuer && slices.Contains(id.Claims[b.Claim], b.Value)
	}
	return false
}

// Bindings are all that there are, by name.
type Bindings []*Binding

// Principal is a caller with the grants of all bindings that are for it, which may be none. It is in the namespace
// of its grants where they are of one.
func (bs Bindings) Principal(id *Identity) *Principal {
	p := &Principal{Kind: id.Kind, Name: id.Name, Namespace: DefaultNamespace, Expires: id.Expires}
	for _, b := range bs {
		if b.Matches(id) {
			p.Grants = append(p.Grants, b.Grants...)
		}
	}
	p.Namespace = p.Grants.Home()
	return p
}
