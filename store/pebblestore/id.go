package pebblestore

import (
	"encoding/hex"
)

// An id is stored behind one of these.
const (
	idText byte = 0 // the id as it is
	idUUID byte = 1 // 16 bytes
)

// appendID packs ids that are UUIDs in their usual spelling. All others, also
// other spellings of UUIDs, stay text: every id comes back as it was.
func appendID(b []byte, id string) []byte {
	start := len(b)
	b = append(b, idUUID)
	if b, ok := appendUUID(b, id); ok {
		return b
	}
	return append(append(b[:start], idText), id...)
}

func appendUUID(b []byte, id string) ([]byte, bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return b, false
	}
	for i := 0; i < len(id); i += 2 {
		switch i {
		case 8, 13, 18, 23:
			i++ // over the dash
		}
		high, low := hexValue[id[i]], hexValue[id[i+1]]
		if high|low > 0xf {
			return b, false
		}
		b = append(b, high<<4|low)
	}
	return b, true
}

// hexValue maps lower case hexadecimal digits to their value, all else to 0xff.
var hexValue = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, digit := range []byte("0123456789abcdef") {
		values[digit] = byte(i)
	}
	return values
}()

// decodeID reads what appendID wrote.
func decodeID(b []byte) (string, bool) {
	switch {
	case len(b) >= 1 && b[0] == idText:
		return string(b[1:]), true
	case len(b) == 17 && b[0] == idUUID:
		var text [36]byte
		hex.Encode(text[:8], b[1:5])
		hex.Encode(text[9:13], b[5:7])
		hex.Encode(text[14:18], b[7:9])
		hex.Encode(text[19:23], b[9:11])
		hex.Encode(text[24:], b[11:17])
		text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
		return string(text[:]), true
	}
	return "", false
}

// uuid7 is an id that is a UUID of version 7, as two numbers that sort as it does.
type uuid7 struct{ hi, lo uint64 }

// unknown is the newest id of a shard of which it is not known.
var unknown = uuid7{1<<64 - 1, 1<<64 - 1}

func (u uuid7) compare(v uuid7) int {
	switch {
	case u == v:
		return 0
	case u.hi < v.hi || u.hi == v.hi && u.lo < v.lo:
		return -1
	}
	return 1
}
