package redisstore

import "github.com/ddq-io/ddq/store/redisstore/conn"

// Config says which Redis to use and how.
type Config = conn.Config

// Exposure is a way in which others than ddq may use a server.
type Exposure = conn.Exposure

// CheckURL says what is wrong with a Config.URL, and shows no password.
func CheckURL(raw string) error { return conn.CheckURL(raw) }

// RedactURL returns a Config.URL for people and logs: with xxxxx in the place of
// passwords. Of a URL that is not well-formed it returns the scheme at most.
func RedactURL(raw string) string { return conn.RedactURL(raw) }
