package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"
)

// A token is ddq_, a key id, _, a secret of 256 random bits and a checksum, so that scanners
// for leaked secrets know one, and a typing error is found without asking the store.
const (
	tokenPrefix  = "ddq_" //nolint:gosec // not a credential: how one begins
	idLength     = 10
	secretLength = 43
	sumLength    = 6
	tokenLength  = len(tokenPrefix) + idLength + 1 + secretLength + sumLength
	secretAt     = len(tokenPrefix) + idLength + 1
	sumAt        = secretAt + secretLength

	digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Bounds of what tokens are made with.
const (
	DefaultLife = 90 * 24 * time.Hour
	maxLife     = 10 * 365 * 24 * time.Hour
	maxName     = 128
	maxGrants   = 100
	maxCalls    = 1_000_000
	maxBytes    = 1 << 30
	maxMakers   = 32
)

// ErrBadToken is of text that cannot be a token: not its form, or not its checksum.
var ErrBadToken = errors.New("not a token")

// Hash is what is kept of a token's secret. The secret is random and long, so a slow hash
// would gain nothing.
type Hash [sha256.Size]byte

// Token is what is kept of a token, under its id.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Hash      Hash      `json:"hash"`
	Namespace string    `json:"namespace"`
	Grants    Grants    `json:"grants"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
	Makers    []string  `json:"makers,omitempty"` // see Principal
	Expires   time.Time `json:"expires,omitzero"` // zero: never
	Successor string    `json:"successor,omitzero"`

	CallsPerSecond int `json:"calls_per_second,omitzero"` // at each node; 0: no bound
	BytesPerSecond int `json:"bytes_per_second,omitzero"` // of payloads, at each node; 0: no bound
}

// NewToken makes the secret of a token, and its id and hash. The secret is kept nowhere.
func NewToken() (id string, secret Secret, hash Hash) {
	id = randomText(8, idLength)
	text := tokenPrefix + id + "_" + randomText(sha256.Size, secretLength)
	sum := checksum(text)
	text += string(sum[:])
	return id, NewSecret(text), hashOf(text)
}

// randomText is length digits of so many random bytes. It loses the bits beyond its length.
func randomText(bytes, length int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw) // never fails
	return inDigits(new(big.Int).SetBytes(raw), length)
}

func inDigits(n *big.Int, length int) string {
	out, base, digit := make([]byte, length), big.NewInt(int64(len(digits))), new(big.Int)
	for i := range out {
		n.DivMod(n, base, digit)
		out[len(out)-1-i] = digits[digit.Int64()]
	}
	return string(out)
}

func checksum(text string) (out [sumLength]byte) {
	sum := ^uint32(0)
	for i := range len(text) { // by hand: the library's would need a copy on the heap
		sum = crc32.IEEETable[byte(sum)^text[i]] ^ sum>>8
	}
	sum = ^sum
	for i := range out {
		out[sumLength-1-i], sum = digits[sum%uint32(len(digits))], sum/uint32(len(digits))
	}
	return out
}

func hashOf(token string) Hash {
	var secret [secretLength]byte
	copy(secret[:], token[secretAt:sumAt])
	return sha256.Sum256(secret[:])
}

// LooksLikeToken reports whether a credential is meant to be a token of ddq.
func LooksLikeToken(text string) bool { return strings.HasPrefix(text, tokenPrefix) }

// ParseToken returns the id and the hash that the token in text must have.
func ParseToken(text string) (id string, hash Hash, err error) {
	if len(text) != tokenLength || !LooksLikeToken(text) || text[secretAt-1] != '_' {
		return "", Hash{}, ErrBadToken
	}
	for i := len(tokenPrefix); i < len(text); i++ {
		if c := text[i]; i != secretAt-1 && !digit(c) {
			return "", Hash{}, ErrBadToken
		}
	}
	if checksum(text[:sumAt]) != [sumLength]byte([]byte(text[sumAt:])) {
		return "", Hash{}, ErrBadToken
	}
	return text[len(tokenPrefix) : secretAt-1], hashOf(text), nil
}

func digit(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// Equal compares in constant time. It is the one place where secrets are compared.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// Expired reports whether a token is over at now.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Principal is who calls with t.
func (t *Token) Principal() *Principal {
	return &Principal{
		Kind: KindToken, ID: t.ID, Name: t.Name, Namespace: t.Namespace, Grants: t.Grants, Expires: t.Expires, Makers: t.Makers,
		CallsPerSecond: t.CallsPerSecond, BytesPerSecond: t.BytesPerSecond,
	}
}

// MadeBy is the id of the token that made t; empty when another credential did.
func (t *Token) MadeBy() string {
	if len(t.Makers) == 0 {
		return ""
	}
	return t.Makers[len(t.Makers)-1]
}

// Check says what is wrong with a token that is to be made at now.
func (t *Token) Check(now time.Time) error {
	switch {
	case t.Name == "" || len(t.Name) > maxName || !utf8.ValidString(t.Name):
		return fmt.Errorf("the name is 1 to %d bytes of UTF-8", maxName)
	case t.CallsPerSecond < 0 || t.CallsPerSecond > maxCalls:
		return fmt.Errorf("calls a second are 1 to %d", maxCalls)
	case t.BytesPerSecond < 0 || t.BytesPerSecond > maxBytes:
		return fmt.Errorf("bytes a second are 1 to %d", maxBytes)
	case len(t.Grants) == 0:
		return errors.New("no grants: a token that may do nothing")
	case len(t.Grants) > maxGrants:
		return fmt.Errorf("more than %d grants", maxGrants)
	case t.Expired(now):
		return errors.New("it would have expired already")
	case t.Expires.After(now.Add(maxLife)):
		return errors.New("it would expire in more than ten years")
	}
	for _, g := range t.Grants {
		if err := g.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Within reports whether a token gives no more than its maker has, for no longer, and within its bounds.
func (t *Token) Within(maker *Principal) bool {
	outlives := !maker.Expires.IsZero() && (t.Expires.IsZero() || t.Expires.After(maker.Expires))
	return !outlives && !exceeds(t.CallsPerSecond, maker.CallsPerSecond) && !exceeds(t.BytesPerSecond, maker.BytesPerSecond) && maker.Grants.Cover(t.Grants)
}

// exceeds compares two bounds, of which 0 is none.
func exceeds(bound, other int) bool { return other > 0 && (bound == 0 || bound > other) }
