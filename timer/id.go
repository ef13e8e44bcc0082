package timer

import (
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// key is an id as the queue keeps it: a canonical UUID (lower case, 36
// characters) packed into 16 bytes, or any other id by its name.
type key struct {
	hi, lo uint64 // the packed UUID; zero when named
	name   string // the id itself; only when named
	named  bool
}

// uuidLen is the length of a canonical UUID, dashes included.
const uuidLen = 36

// hexPos are the places of a UUID's 16 byte pairs in its text form.
var hexPos = [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// hexDigits are written in lower case, the only case that is packed: packing
// must give back the very same characters.
const hexDigits = "0123456789abcdef"

// notHex marks a byte that is no lower case hexadecimal digit.
const notHex = 0xff

// hexValue is the value of each hexadecimal digit, or notHex.
var hexValue = func() (values [256]byte) {
	for i := range values {
		values[i] = notHex
	}
	for i := range len(hexDigits) {
		values[hexDigits[i]] = byte(i)
	}
	return values
}()

// keyOf packs id where it can.
func keyOf(id string) key {
	if len(id) != uuidLen || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return key{name: id, named: true}
	}
	var k key
	var bad byte
	for i, at := range hexPos[:8] {
		high, low := hexValue[id[at]], hexValue[id[at+1]]
		bad |= high | low
		k.hi |= uint64(high<<4|low) << (56 - 8*i)
	}
	for i, at := range hexPos[8:] {
		high, low := hexValue[id[at]], hexValue[id[at+1]]
		bad |= high | low
		k.lo |= uint64(high<<4|low) << (56 - 8*i)
	}
	if bad&0xf0 != 0 {
		return key{name: id, named: true}
	}
	return k
}

// appendUUID appends the text form of a packed UUID to b.
func appendUUID(b []byte, hi, lo uint64) []byte {
	at := len(b)
	b = append(b, "........-....-....-....-............"...)
	text := b[at : at+uuidLen : at+uuidLen]
	for i, p := range hexPos {
		v := byte(hi >> (56 - 8*(i&7)))
		if i >= 8 {
			v = byte(lo >> (56 - 8*(i&7)))
		}
		text[p], text[p+1] = hexDigits[v>>4], hexDigits[v&0xf]
	}
	return b
}

// seed makes the hashes of each queue its own, so that no choice of ids can
// pile them up in one place of every index.
type seed struct {
	names  maphash.Seed
	hi, lo uint64
}

func newSeed() seed {
	s := seed{names: maphash.MakeSeed()}
	s.hi, s.lo = maphash.String(s.names, "hi"), maphash.String(s.names, "lo")
	return s
}

func (s *seed) hash(k *key) uint64 {
	if k.named {
		return maphash.String(s.names, k.name)
	}
	high, low := bits.Mul64(k.hi^s.hi, k.lo^s.lo)
	return high ^ low
}

// scribe turns packed UUIDs back into strings. It writes many into one
// allocation, and not more, so that one id kept for long keeps little else.
type scribe struct{ text []byte }

// scribeIDs is how many ids share an allocation: 64 x 36 bytes is exactly one
// of the runtime's size classes.
const scribeIDs = 64

// id returns the text form of a packed UUID; more is how many ids, this one
// included, are still to come.
func (s *scribe) id(hi, lo uint64, more int) string {
	if cap(s.text)-len(s.text) < uuidLen {
		s.text = make([]byte, 0, uuidLen*min(more, scribeIDs))
	}
	at := len(s.text)
	s.text = appendUUID(s.text, hi, lo)
	return unsafe.String(&s.text[at], uuidLen) // written once, never again
}
