// Package token gives each call of a client the token that counts at its moment, for programs that run longer
// than their tokens do:
//
//	client.Config{TLS: secure, Tokens: token.File("/run/secrets/ddq")}
//
//	issuer := token.Client{Issuer: "https://login.example.com", ID: "mailer", Secret: secret, Audience: "ddq"}
//	client.Config{TLS: secure, Tokens: token.Issued(issuer.Fetch)}
//
// A token is renewed before it ends. While that fails the former one is shown for as long as it counts. A call
// that a server refuses for its token is made once more if there is another one by then: it was refused before
// anything was done. A stream whose token has ended breaks as it does when a server goes away, so workers,
// watches and streams of tasks begin another one with the token of that moment.
package token
