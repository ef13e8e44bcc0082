package timer

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// key is what a queue knows an id by: a canonical UUID (lower case, 36
// characters) packed into 16 bytes, or that it is named, for any other. It stays
// small enough to live in registers, which is half the speed of the queue.
type key struct {
	hi, lo uint64 // the packed UUID; 0 when named
	named  bool
}

// uuidLen is the length of a canonical UUID, dashes included.
const uuidLen = 36

// keyOf packs id where packing gives back the very same characters.
func keyOf(id string) key {
	if len(id) != uuidLen || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return key{named: true}
	}
	a, badA := unhex(load4(id[0:])<<32 | load4(id[4:]))
	b, badB := unhex(load4(id[9:])<<32 | load4(id[14:]))
	c, badC := unhex(load4(id[19:])<<32 | load4(id[24:]))
	d, badD := unhex(load4(id[28:])<<32 | load4(id[32:]))
	if badA|badB|badC|badD != 0 {
		return key{named: true}
	}
	return key{hi: a<<32 | b, lo: c<<32 | d}
}

// appendUUID appends the text form of a packed UUID to b.
func appendUUID(b []byte, hi, lo uint64) []byte {
	first, second, third, last := hex(hi>>32), hex(hi&0xffffffff), hex(lo>>32), hex(lo&0xffffffff)
	b = binary.BigEndian.AppendUint64(b, first)
	b = append(b, '-')
	b = binary.BigEndian.AppendUint32(b, uint32(second>>32))
	b = append(b, '-')
	b = binary.BigEndian.AppendUint32(b, uint32(second))
	b = append(b, '-')
	b = binary.BigEndian.AppendUint32(b, uint32(third>>32))
	b = append(b, '-')
	b = binary.BigEndian.AppendUint32(b, uint32(third))
	return binary.BigEndian.AppendUint64(b, last)
}

// load4 returns four characters, the first in the highest byte.
func load4(s string) uint64 {
	return uint64(s[0])<<24 | uint64(s[1])<<16 | uint64(s[2])<<8 | uint64(s[3])
}

// ones has a 1 in each of eight bytes; times n, an n.
const ones = 0x0101010101010101

// unhex turns eight lower case hexadecimal digits, a byte each, into the 32 bits
// that they stand for. bad is not 0 where one is something else.
func unhex(digits uint64) (v, bad uint64) {
	v = digits&(ones*0x0f) + digits>>6&ones*9 // letters have the bit 0x40
	bad = v&(ones*0xf0) | letters(v) ^ digits // what does not come back was no digit
	v = (v | v>>4) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return (v | v>>16) & 0xffffffff, bad
}

// hex is the way back.
func hex(v uint64) uint64 {
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & (ones * 0x0f)
	return letters(v)
}

// letters writes eight values below 16, a byte each, as digits.
func letters(v uint64) uint64 {
	over9 := (v + ones*6) >> 4 & ones
	return v + ones*'0' + over9*('a'-'0'-10)
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

// hash returns the hash of an id whose key is k.
func (s *seed) hash(k key, id string) uint64 {
	if k.named {
		return maphash.String(s.names, id)
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
