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
	Cert, Key string // empty: none, of what only dials
	CA        string // signed the certificates of servers; empty: the system's authorities
	ClientCA  string // signed those of clients; may be empty

	GuardKey func(name string) error // refuses the file of a key that is to be used; nil: any may be

	ClientAuth tls.ClientAuthType
	Min        uint16 // version of TLS
}

// Certs are files as they were when they last could be used. Open reads them; Follow reads
// them again and again, in one goroutine, which is the caller's.
type Certs struct {
	files Files
	now   atomic.Pointer[loaded]

	changes atomic.Int64
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
	if c.files.Key != "" && c.files.GuardKey != nil {
		if err := c.files.GuardKey(c.files.Key); err != nil {
			return false, err
		}
	}
	if next.cert, err = c.pair(all[0], all[1]); err != nil {
		return false, err
	}
	next.ca, err = pool(c.files.CA, all[2])
	client, clientErr := pool(c.files.ClientCA, all[3])
	if err = errors.Join(err, clientErr); err != nil {
		return false, err
	}
	next.client = client
	c.now.Store(next)
	c.changes.Add(1)
	return true, nil
}

// pair reads the certificate with its key; the empty one when there is none.
func (c *Certs) pair(cert, key []byte) (tls.Certificate, error) {
	if c.files.Cert == "" {
		return tls.Certificate{}, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("%s and %s: %w", c.files.Cert, c.files.Key, err)
	}
	if now := time.Now(); now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
		return pair, fmt.Errorf("%s is valid from %s to %s only", c.files.Cert, pair.Leaf.NotBefore.Format(time.RFC3339), pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return pair, nil
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

// Own is the certificate in use, and those that signed it as far as they are in its file.
func (c *Certs) Own() []*x509.Certificate {
	cert := &c.now.Load().cert
	chain := make([]*x509.Certificate, 0, len(cert.Certificate))
	for _, der := range cert.Certificate {
		if parsed, err := x509.ParseCertificate(der); err == nil {
			chain = append(chain, parsed)
		}
	}
	return chain
}

// Change is another number when the authorities for clients may be others.
func (c *Certs) Change() int64 { return c.changes.Load() }

// Vouched reports whether a client's certificate counts, by the authorities that are in the files
// now. The chain is that of its connection.
func (c *Certs) Vouched(chain []*x509.Certificate) bool {
	authorities := c.now.Load().client
	if authorities == nil || len(chain) == 0 {
		return false
	}
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}
