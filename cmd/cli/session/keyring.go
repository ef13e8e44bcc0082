package session

import (
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/envelope"
)

// KeyringFlag adds --keyring, for commands that send or show payloads.
func (c *Session) KeyringFlag(fs *pflag.FlagSet) {
	fs.StringVar(&c.keyring, "keyring", "", "file of the keys that encrypt payloads, see ddq keyring (default payloads are as they are)")
}

// Codec is what --keyring says; nil when it was not given.
func (c *Session) Codec() (client.Codec, error) {
	if c.keyring == "" {
		return nil, nil
	}
	ring, err := envelope.ReadRing(c.keyring)
	if err != nil {
		return nil, Usagef("--keyring: %v", err)
	}
	return envelope.New(envelope.Config{Keys: ring, FingerprintKey: ring.FingerprintKey()})
}
