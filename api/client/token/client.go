package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client is a program that an issuer of OpenID Connect knows by a secret: it gets tokens by the grant of client
// credentials of OAuth 2.0. Issued(c.Fetch) is a source of them.
type Client struct {
	// Issuer is its https URL. Where it gives tokens out, it says itself.
	Issuer string
	// ID and Secret are what the issuer knows the program by.
	ID, Secret string
	// Audience is whom tokens are for, as --oidc-audience of the servers says, to issuers that are asked by that
	// name. Others are asked by Scopes.
	Audience string
	Scopes   []string
	// HTTP makes the requests. Defaults to one that trusts the authorities of the system.
	HTTP *http.Client
}

// largestAnswer bounds what an issuer says.
const largestAnswer = 1 << 20

// Fetch asks for a token.
func (c Client) Fetch(ctx context.Context) (Token, error) {
	if !strings.HasPrefix(c.Issuer, "https://") {
		return Token{}, fmt.Errorf("issuer %q is no https URL", c.Issuer)
	}
	var about struct {
		Issuer        string `json:"issuer"`
		TokenEndpoint string `json:"token_endpoint"`
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.Issuer, "/")+"/.well-known/openid-configuration", http.NoBody)
	if err != nil {
		return Token{}, err
	}
	if err := c.do(ask, &about); err != nil {
		return Token{}, err
	}
	if about.Issuer != c.Issuer || !strings.HasPrefix(about.TokenEndpoint, "https://") {
		return Token{}, fmt.Errorf("issuer %s says that it is %q, and gives tokens out at %q", c.Issuer, about.Issuer, about.TokenEndpoint)
	}
	return c.token(ctx, about.TokenEndpoint)
}

// token asks for a token where they are given out.
func (c Client) token(ctx context.Context, endpoint string) (Token, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.Audience != "" {
		form.Set("audience", c.Audience)
	}
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return Token{}, err
	}
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ask.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) // as RFC 6749 says, section 2.3.1
	var given struct {
		Text string `json:"access_token"`
		Kind string `json:"token_type"`
		Life int64  `json:"expires_in"` // seconds; 0: it is not said
	}
	asked := time.Now()
	if err := c.do(ask, &given); err != nil {
		return Token{}, err
	}
	if given.Text == "" || !strings.EqualFold(given.Kind, "bearer") {
		return Token{}, errors.New("the issuer gave no bearer token")
	}
	t := Token{Text: given.Text}
	if given.Life > 0 {
		t.Expires = asked.Add(time.Duration(given.Life) * time.Second)
	}
	return t, nil
}

// do reads the JSON of an answer.
func (c Client) do(ask *http.Request, into any) error {
	ask.Header.Set("Accept", "application/json")
	answer, err := c.http().Do(ask)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		var refusal struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(body, &refusal) // what says no more is told by its status
		return fmt.Errorf("the issuer answers %s %s", answer.Status, refusal.Error)
	}
	return json.Unmarshal(body, into)
}

// http is what makes requests. It follows no redirect: the secret is for the issuer alone.
func (c Client) http() *http.Client {
	own := http.Client{}
	if c.HTTP != nil {
		own = *c.HTTP
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
