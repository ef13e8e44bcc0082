package certs

import "crypto/tls"

// suites are those of TLS 1.2 that authenticate what they encrypt. Those of 1.3 all do.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// Server is how to listen. Every connection is set up with what the files last had.
func (c *Certs) Server(protos ...string) *tls.Config {
	base := &tls.Config{MinVersion: c.files.Min, CipherSuites: suites, NextProtos: protos, ClientAuth: c.files.ClientAuth}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		own, now := base.Clone(), c.now.Load()
		own.GetConfigForClient = nil
		own.Certificates, own.ClientCAs = []tls.Certificate{now.cert}, now.client
		return own, nil
	}
	return base
}

// Client is how to dial the next connection, to a server whose certificate has a name; an
// empty name is that of the address.
func (c *Certs) Client(name string) *tls.Config {
	now := c.now.Load()
	config := &tls.Config{MinVersion: c.files.Min, CipherSuites: suites, RootCAs: now.ca, ServerName: name}
	if c.files.Cert != "" {
		config.Certificates = []tls.Certificate{now.cert}
	}
	return config
}
