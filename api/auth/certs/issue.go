package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"time"
)

// Request is a certificate that is to be made.
type Request struct {
	Name  string
	Hosts []string // names and addresses that a server is called by
	URI   *url.URL // who has it; nil: nobody, to servers that know callers by certificates
	CA    bool     // it signs others
	For   time.Duration
}

// backdate is how late the clock of a machine may be that is to trust a new certificate.
const backdate = 5 * time.Minute

// Issue makes a certificate with a key of its own and writes both, in PEM. It is signed by
// an authority, or by itself when that is nil. Files that exist are not touched.
func Issue(r Request, by *tls.Certificate, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: r.Name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(r.For),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  r.CA,
	}
	if r.CA {
		cert.KeyUsage, cert.MaxPathLenZero = x509.KeyUsageCertSign, true
	} else {
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	if len(r.Hosts) > 0 {
		cert.ExtKeyUsage = append(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, host)
		}
	}
	if r.URI != nil {
		cert.URIs = []*url.URL{r.URI}
	}
	parent, signer := cert, crypto.PrivateKey(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
		cert.NotAfter = earlier(cert.NotAfter, parent.NotAfter)
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := write(keyFile, 0o600, "PRIVATE KEY", secret); err != nil {
		return err
	}
	if err := write(certFile, 0o644, "CERTIFICATE", der); err != nil {
		return errors.Join(err, os.Remove(keyFile))
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func write(name string, mode os.FileMode, kind string, der []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the caller chose the name
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
}

// Authority reads what signs others.
func Authority(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	if !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%s is not the certificate of an authority", certFile)
	}
	return &pair, nil
}
