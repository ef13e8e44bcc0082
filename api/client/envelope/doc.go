// Package envelope encrypts payloads in the programs that make and handle tasks, so that neither a
// server nor its store sees them. A [Codec] is the Codec of client.Config and worker.Config:
//
//	keys, err := envelope.ReadRing("/etc/mail/keyring")
//	codec, err := envelope.New(envelope.Config{Keys: keys, FingerprintKey: keys.FingerprintKey()})
//	c, err := client.Dial(addr, client.Config{Codec: codec})
//
// A payload is encrypted with AES-256-GCM under a data key, which the program makes, and makes anew
// every hour. The data key goes with the payload, wrapped by a key-encryption key of a [Ring], a file
// that `ddq keyring` makes, or of a key management service, which is [Keys] of the program's own.
//
// # Form
//
//	DDQE1 | length, id of the key-encryption key | length, wrapped data key | nonce, ciphertext, tag
//
// The lengths are a byte and two, the larger first. The nonce has 12 bytes and the tag 16. Associated
// data is "DDQE1" and the topic: a payload does not decrypt in another topic. A Ring wraps a data key with
// AES-256-GCM likewise, with "DDQE1" and the id of the key as associated data. An encrypted payload is
// about 110 bytes longer.
//
// The fingerprint, by which a server knows the same task again although its ciphertext is another one,
// is HMAC-SHA-256 under a key that does not rotate, of "DDQE1", the length of the topic in a byte, the
// topic and the payload. A server sees from it which tasks of a topic have the same payload.
package envelope
