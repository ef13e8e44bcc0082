package certs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// Files are where a certificate is, and whom to trust.
type Files struct {
	Cert, Key string
	CA        string // signed the certificates of servers; empty: the system's authorities
	ClientCA  string // signed those of clients; may be empty

	ClientAuth tls.ClientAuthType
	Min        uint16 // version of TLS
}

// Certs are files as they were when they last could be used. Open reads them; Follow reads
// them again and again, in one goroutine, which is the caller's.
type Certs struct {
	files Files
	now   atomic.Pointer[loaded]
}

// loaded is what was in the files at one moment. It does not change.
type loaded struct {
	print      [sha256.Size]byte // of all files
	cert       tls.Certificate
	ca, client *x509.CertPool
}

// Open reads the files; an error says which cannot be used, and why.
func Open(f Files) (*Certs, error) {
	c := &Certs{files: f}
	_, err := c.Reload()
	return c, err
}

// Reload reads the files and reports whether something else is in them. On an error all
// stays as it was: files are not written in one moment, and a mistake must not stop a server.
func (c *Certs) Reload() (changed bool, err error) {
	next, before := new(loaded), c.now.Load()
	var all [4][]byte
	for i, name := range []string{c.files.Cert, c.files.Key, c.files.CA, c.files.ClientCA} {
		if name == "" {
			continue
		}
		if all[i], err = os.ReadFile(name); err != nil {
			return false, err
		}
		sum := sha256.Sum256(all[i])
		next.print = sha256.Sum256(append(next.print[:], sum[:]...))
	}
	if before != nil && before.print == next.print {
		return false, nil
	}
	if next.cert, err = tls.X509KeyPair(all[0], all[1]); err != nil {
		return false, fmt.Errorf("%s and %s: %w", c.files.Cert, c.files.Key, err)
	}
	if now := time.Now(); now.Before(next.cert.Leaf.NotBefore) || now.After(next.cert.Leaf.NotAfter) {
		return false, fmt.Errorf("%s is valid from %s to %s only", c.files.Cert, next.cert.Leaf.NotBefore.Format(time.RFC3339), next.cert.Leaf.NotAfter.Format(time.RFC3339))
	}
	next.ca, err = pool(c.files.CA, all[2])
	client, clientErr := pool(c.files.ClientCA, all[3])
	if err = errors.Join(err, clientErr); err != nil {
		return false, err
	}
	next.client = client
	c.now.Store(next)
	return true, nil
}

func pool(name string, pem []byte) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", name)
	}
	return p, nil
}

// Follow reloads until ctx ends, and tells of every change and every failure.
func (c *Certs) Follow(ctx context.Context, every time.Duration, tell func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if changed, err := c.Reload(); changed || err != nil {
				tell(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Expires is when the certificate does.
func (c *Certs) Expires() time.Time { return c.now.Load().cert.Leaf.NotAfter }
