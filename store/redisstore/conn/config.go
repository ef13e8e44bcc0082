package conn

import (
	"cmp"
	"crypto/tls"
	"time"
)

// Config says which Redis to use and how.
type Config struct {
	// URL says where the servers are. Required. One of
	//
	//	redis://[user:password@]host:port[/db]
	//	unix:///path/to/socket
	//	redis-sentinel://[user:password@]host:port[,host:port...]/name[/db]
	//	redis-cluster://[user:password@]host:port[,host:port...]
	//
	// and rediss, rediss-sentinel, rediss-cluster for TLS, where the certificate of
	// every server must be valid for the name of the first host. User and password are
	// those of the servers; sentinels have sentinel_username and sentinel_password
	// as options behind a ?, where wait_replicas and wait_timeout may stand as well.
	URL string

	// WaitReplicas is how many replicas must have a change before it is answered
	// with success; each change costs at least a round trip to them, and none
	// succeeds while fewer can be reached. Option wait_replicas in the URL goes
	// before. Defaults to 0.
	WaitReplicas int

	// WaitTimeout is how long they are waited for, after which the outcome of the
	// change is unknown. It must be below Timeout. Option wait_timeout in the URL
	// goes before. Defaults to 1s.
	WaitTimeout time.Duration

	// AllowVolatile accepts a Redis without append-only file, which loses
	// acknowledged tasks when it stops.
	AllowVolatile bool

	// TLS returns, for each connection of a rediss URL, whom it trusts and which certificate
	// it shows, to a server of that name. Defaults to the authorities of the system and none.
	TLS func(server string) *tls.Config

	// PoolSize is the most connections kept open to each server. More let more calls run at
	// once, though Redis works on one at a time. Defaults to 16.
	PoolSize int

	// DialTimeout bounds making a connection. Defaults to 2s.
	DialTimeout time.Duration

	// Timeout bounds sending a call and waiting for its answer, after which its
	// outcome is unknown. It must exceed the longest stall of the server. Behind
	// sentinels and in a cluster it also bounds how long a call that was refused
	// is tried again while another server takes over. Defaults to 5s.
	Timeout time.Duration

	// CheckEvery is the pause between checks of the servers' configuration, which
	// Info reports. Defaults to 30s.
	CheckEvery time.Duration
}

// secure returns what connections are encrypted with, of what the URL says; nil: they are not.
func (c Config) secure(said *tls.Config) func() *tls.Config {
	if said == nil || c.TLS == nil {
		return func() *tls.Config { return said }
	}
	name := said.ServerName
	return func() *tls.Config { return c.TLS(name) }
}

func (c Config) timeout() time.Duration { return cmp.Or(c.Timeout, 5*time.Second) }
