package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/auth/oidc"
	"github.com/ddq-io/ddq/api/auth/oidc/oidctest"
)

// follow starts what follows an issuer.
func follow(t *testing.T, from *oidctest.Issuer) *oidc.Issuers {
	t.Helper()
	s, err := oidc.New(oidc.Config{Issuers: []string{from.URL}, Audience: oidctest.Audience, Transport: from}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

func bubble(t *testing.T, test func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers)) {
	synctest.Test(t, func(t *testing.T) {
		from := oidctest.New()
		test(t, from, follow(t, from))
	})
}

func TestATokenTellsWhoseItIs(t *testing.T) {
	bubble(t, func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers) {
		claims := from.Claims("mailer", "team-mail", "all")
		claims["aud"], claims["level"] = []string{"other", oidctest.Audience}, 3
		id, err := s.Verify(t.Context(), from.Sign(claims))
		if err != nil {
			t.Fatal(err)
		}
		if id.Kind != auth.KindIssuer || id.Issuer != from.URL || !strings.HasSuffix(id.Name, " mailer") || !s.Counts(id) {
			t.Errorf("got %+v", id)
		}
		if fmt.Sprint(id.Claims["groups"]) != "[team-mail all]" || id.Claims["level"] != nil || fmt.Sprint(id.Claims["sub"]) != "[mailer]" {
			t.Errorf("claims %v", id.Claims)
		}
		if left := time.Until(id.Expires); left != 10*time.Minute+30*time.Second {
			t.Errorf("expires in %v", left)
		}
	})
}

// What must not count, and how each is made from what does.
func TestTokensThatDoNotCount(t *testing.T) {
	pair, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&pair.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	foreign := jose.JSONWebKey{Key: pair, KeyID: "key-1"}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	type maker func(from *oidctest.Issuer, claims map[string]any) string
	set := func(name string, value any) maker {
		return func(from *oidctest.Issuer, claims map[string]any) string {
			claims[name] = value
			return from.Sign(claims)
		}
	}
	in := func(name string, d time.Duration) maker {
		return func(from *oidctest.Issuer, claims map[string]any) string {
			claims[name] = time.Now().Add(d).Unix()
			return from.Sign(claims)
		}
	}
	without := func(name string) maker {
		return func(from *oidctest.Issuer, claims map[string]any) string {
			delete(claims, name)
			return from.Sign(claims)
		}
	}
	header := func(name jose.HeaderKey, value any) maker {
		return func(from *oidctest.Issuer, claims map[string]any) string {
			return oidctest.Sign(from.Key(), "ES256", claims, map[jose.HeaderKey]any{name: value})
		}
	}
	for name, change := range map[string]maker{
		"alg none": func(_ *oidctest.Issuer, claims map[string]any) string {
			return part(map[string]any{"alg": "none", "kid": "key-1"}) + "." + part(claims) + "."
		},
		"alg None": func(_ *oidctest.Issuer, claims map[string]any) string {
			return part(map[string]any{"alg": "None", "kid": "key-1"}) + "." + part(claims) + "."
		},
		"HS256 with a public key": func(_ *oidctest.Issuer, claims map[string]any) string {
			return oidctest.Sign(jose.JSONWebKey{Key: public, KeyID: "rsa"}, "HS256", claims, nil)
		},
		"key of somebody else": func(_ *oidctest.Issuer, claims map[string]any) string {
			return oidctest.Sign(foreign, "RS256", claims, nil)
		},
		"embedded key": func(_ *oidctest.Issuer, claims map[string]any) string {
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: "RS256", Key: pair}, &jose.SignerOptions{EmbedJWK: true})
			if err != nil {
				t.Fatal(err)
			}
			signed, err := signer.Sign([]byte(mustJSON(claims)))
			if err != nil {
				t.Fatal(err)
			}
			token, _ := signed.CompactSerialize()
			return token
		},
		"jku": func(_ *oidctest.Issuer, claims map[string]any) string {
			return oidctest.Sign(foreign, "RS256", claims, map[jose.HeaderKey]any{"jku": "https://evil.test/keys"})
		},
		"x5u": func(_ *oidctest.Issuer, claims map[string]any) string {
			return oidctest.Sign(foreign, "RS256", claims, map[jose.HeaderKey]any{"x5u": "https://evil.test/cert"})
		},
		"kid traversal": func(_ *oidctest.Issuer, claims map[string]any) string {
			return oidctest.Sign(jose.JSONWebKey{Key: pair, KeyID: "../../dev/null"}, "RS256", claims, nil)
		},
		"no kid of several keys": func(from *oidctest.Issuer, claims map[string]any) string {
			k := from.Key()
			k.KeyID = ""
			return oidctest.Sign(k, "ES256", claims, nil)
		},
		"crit":                header("crit", []string{"x"}),
		"b64":                 header("b64", true),
		"typ of a log-out":    header("typ", "logout+jwt"),
		"typ no text":         header("typ", 1),
		"no exp":              without("exp"),
		"exp as text":         set("exp", "9999999999"),
		"exp null":            set("exp", nil),
		"expired":             in("exp", -31*time.Second),
		"exp long ago":        set("exp", -1e300),
		"nbf to come":         in("nbf", 31*time.Second),
		"nbf as text":         set("nbf", "0"),
		"iat to come":         in("iat", 31*time.Second),
		"no issuer":           without("iss"),
		"wrong issuer":        set("iss", "https://issuer.test/"),
		"issuer as a list":    set("iss", []string{"https://issuer.test"}),
		"no audience":         without("aud"),
		"other audience":      set("aud", "ui"),
		"audiences of others": set("aud", []string{"ui", "ddq2"}),
		"no subject":          without("sub"),
		"subject of a line":   set("sub", "a\nb"),
		"9 KiB":               set("x", strings.Repeat("x", 9<<10)),
		"two signatures": func(from *oidctest.Issuer, claims map[string]any) string {
			signer, err := jose.NewMultiSigner([]jose.SigningKey{{Algorithm: "ES256", Key: from.Key()}, {Algorithm: "RS256", Key: foreign}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := signer.Sign([]byte(mustJSON(claims)))
			if err != nil {
				t.Fatal(err)
			}
			return signed.FullSerialize()
		},
		"encrypted": func(from *oidctest.Issuer, claims map[string]any) string {
			e, err := jose.NewEncrypter(jose.A128GCM, jose.Recipient{Algorithm: jose.RSA_OAEP, Key: &pair.PublicKey}, nil)
			if err != nil {
				t.Fatal(err)
			}
			sealed, err := e.Encrypt([]byte(from.Sign(claims)))
			if err != nil {
				t.Fatal(err)
			}
			token, _ := sealed.CompactSerialize()
			return token
		},
		"changed": func(from *oidctest.Issuer, claims map[string]any) string {
			parts := strings.Split(from.Sign(claims), ".")
			claims["sub"] = "root"
			return parts[0] + "." + part(claims) + "." + parts[2]
		},
		"cut": func(from *oidctest.Issuer, claims map[string]any) string {
			token := from.Sign(claims)
			return token[:len(token)-4]
		},
		"no claims": func(from *oidctest.Issuer, _ map[string]any) string {
			return oidctest.Sign(from.Key(), "ES256", []string{"x"}, nil)
		},
		"empty": func(*oidctest.Issuer, map[string]any) string { return "" },
		"dots":  func(*oidctest.Issuer, map[string]any) string { return ".." },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers) {
				from.Add(mustJSON(jose.JSONWebKey{Key: &pair.PublicKey, KeyID: "rsa", Algorithm: "RS256", Use: "enc"}))
				from.Add(`{"kty":"oct","kid":"secret","k":"c2VjcmV0"}`)
				from.Add(`{"kty":"of a later time","kid":"new"}`)
				from.Rotate(true)
				synctest.Wait()
				time.Sleep(15 * time.Minute) // the keys are known
				if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); err != nil {
					t.Fatalf("a good one: %v", err)
				}
				if id, err := s.Verify(t.Context(), change(from, from.Claims("mailer"))); !errors.Is(err, oidc.ErrBadToken) {
					t.Errorf("it counts: %+v, %v", id, err)
				}
			})
		})
	}
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestClocksMayBeHalfAMinuteOff(t *testing.T) {
	bubble(t, func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers) {
		for name, d := range map[string]time.Duration{"exp": -29 * time.Second, "nbf": 29 * time.Second, "iat": 29 * time.Second} {
			claims := from.Claims("mailer")
			claims[name] = time.Now().Add(d).Unix()
			if _, err := s.Verify(t.Context(), from.Sign(claims)); err != nil {
				t.Errorf("%s %v: %v", name, d, err)
			}
		}
	})
}

func TestKeysRotate(t *testing.T) {
	bubble(t, func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers) {
		before := from.Sign(from.Claims("mailer"))
		id, err := s.Verify(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		change := s.Change()
		from.Rotate(true)
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); err != nil {
			t.Errorf("another key: %v", err)
		}
		if s.Change() == change || !s.Counts(id) {
			t.Error("the former key is shown still")
		}
		from.Rotate(false) // and the former ones are withdrawn
		time.Sleep(10*time.Minute + time.Second)
		if _, err := s.Verify(t.Context(), before); !errors.Is(err, oidc.ErrBadToken) || s.Counts(id) {
			t.Errorf("a key that was withdrawn: %v", err)
		}
	})
}

// An issuer is not asked for each key that somebody makes up.
func TestUnknownKeysAskSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers) {
		synctest.Wait()
		time.Sleep(time.Minute)
		before := from.Asked.Load()
		k := from.Key()
		for i := range 10_000 {
			k.KeyID = fmt.Sprint("unknown-", i)
			token := "eyJhbGciOiJFUzI1NiIsImtpZCI6Inh4" // cheap: its signature is not reached
			if i < 100 {
				token = oidctest.Sign(k, "ES256", from.Claims("mailer"), nil)
			}
			if _, err := s.Verify(t.Context(), token); !errors.Is(err, oidc.ErrBadToken) {
				t.Fatal(err)
			}
		}
		if asked := from.Asked.Load() - before; asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestKnownKeysGoOnWhileTheIssuerIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, from *oidctest.Issuer, s *oidc.Issuers) {
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); err != nil {
			t.Fatal(err)
		}
		from.Away.Store(true)
		time.Sleep(23 * time.Hour)
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); err != nil {
			t.Errorf("known: %v", err)
		}
		from.Rotate(true)
		fresh := from.Claims("mailer")
		if _, err := s.Verify(t.Context(), from.Sign(fresh)); !errors.Is(err, oidc.ErrAway) {
			t.Errorf("unknown: %v", err)
		}
		from.Away.Store(false)
		time.Sleep(6 * time.Second)
		if _, err := s.Verify(t.Context(), from.Sign(fresh)); err != nil {
			t.Errorf("when it is back: %v", err)
		}
		from.Away.Store(true)
		time.Sleep(25 * time.Hour)
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); !errors.Is(err, oidc.ErrAway) {
			t.Errorf("away for more than a day: %v", err)
		}
	})
}

func TestAnIssuerThatIsAwayFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := oidctest.New()
		from.Away.Store(true)
		s := follow(t, from)
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); !errors.Is(err, oidc.ErrAway) {
			t.Errorf("got %v", err)
		}
		from.Away.Store(false)
		time.Sleep(6 * time.Second)
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); err != nil {
			t.Error(err)
		}
	})
}

func TestIssuersThatCannotBe(t *testing.T) {
	for name, c := range map[string]oidc.Config{
		"none":        {Audience: "ddq"},
		"no audience": {Issuers: []string{"https://issuer.test"}},
		"plain":       {Issuers: []string{"http://issuer.test"}, Audience: "ddq"},
		"no URL":      {Issuers: []string{"issuer"}, Audience: "ddq"},
		"HS256":       {Issuers: []string{"https://issuer.test"}, Audience: "ddq", Algorithms: []string{"HS256"}},
		"none alg":    {Issuers: []string{"https://issuer.test"}, Audience: "ddq", Algorithms: []string{"none"}},
	} {
		if _, err := oidc.New(c, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: it can", name)
		}
	}
}

// An issuer that is reached over a plain connection, or names another one, is not believed.
func TestKeysComeFromTheIssuerOnly(t *testing.T) {
	for name, url := range map[string]string{"other name": "https://other.test", "plain keys": "http://issuer.test"} {
		synctest.Test(t, func(t *testing.T) {
			from := oidctest.New()
			from.URL = url
			s, err := oidc.New(oidc.Config{Issuers: []string{"https://issuer.test"}, Audience: oidctest.Audience, Transport: from}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			defer s.Stop()
			token := from.Sign(map[string]any{"iss": "https://issuer.test", "sub": "x", "aud": oidctest.Audience, "exp": time.Now().Add(time.Hour).Unix()})
			if _, err := s.Verify(t.Context(), token); !errors.Is(err, oidc.ErrAway) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestAlgorithmsThatWereNotAskedForDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := oidctest.New()
		s, err := oidc.New(oidc.Config{Issuers: []string{from.URL}, Audience: oidctest.Audience, Algorithms: []string{"RS256"}, Transport: from}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		defer s.Stop()
		if _, err := s.Verify(t.Context(), from.Sign(from.Claims("mailer"))); !errors.Is(err, oidc.ErrBadToken) {
			t.Errorf("got %v", err)
		}
	})
}
