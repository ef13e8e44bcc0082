package redisstore

import "encoding/binary"

// The stored form of an id keeps the order of ids, and takes 24 bytes for a UUID
// in its canonical spelling instead of 36, which saves 16 bytes of memory in each
// of the two keys that a pending task is in.
//
// As long as an id looks like a UUID it is written in groups of characters, each
// group one number of two bytes, in which every character has a digit. From the
// first character on that no UUID has at its place the id follows as it is; the
// digit of that character says whether it is below, between or above those that
// a UUID may have. So ids that are nothing like a UUID get two bytes in front.
const uuidShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

// Digits where the shape has a hexadecimal digit; between them are '0' to '9'
// from hexZero on, and 'a' to 'f' from hexA on.
const (
	hexEnd  = 0
	hexLow  = 1 // below '0'
	hexZero = 2
	hexMid  = 12 // between '9' and 'a'
	hexA    = 13
	hexHigh = 19 // above 'f'
	hexBase = 20
)

// Digits where the shape has a dash.
const (
	dashEnd  = 0
	dashLow  = 1
	dash     = 2
	dashHigh = 3
	dashBase = 4
)

// Digits behind the shape.
const (
	tailNone = 0
	tailMore = 1
	tailBase = 2
)

// idPlace is one character of the shape, or what is behind it.
type idPlace struct {
	base   int
	weight int  // of its digit in its group
	last   bool // of its group
}

// idPlaces is the constant layout of the code.
var idPlaces = layOutIDs()

func layOutIDs() (places [len(uuidShape) + 1]idPlace) {
	for i := range places {
		places[i].base = hexBase
		if i == len(uuidShape) {
			places[i].base = tailBase
		} else if uuidShape[i] == '-' {
			places[i].base = dashBase
		}
	}
	for start := 0; start < len(places); {
		product, end := 1, start
		for end < len(places) && product*places[end].base <= 1<<16 {
			product *= places[end].base
			end++
		}
		places[end-1].last = true
		for i := start; i < end; i++ {
			product /= places[i].base
			places[i].weight = product
		}
		start = end
	}
	return places
}

// appendID appends the stored form of an id.
func appendID(b []byte, id string) []byte {
	group := 0
	for i := range idPlaces {
		place := &idPlaces[i]
		digit, goesOn := idDigit(place.base, id, i)
		group += digit * place.weight
		if !goesOn {
			b = binary.BigEndian.AppendUint16(b, uint16(group))
			return append(b, id[i:]...)
		}
		if place.last {
			b = binary.BigEndian.AppendUint16(b, uint16(group))
			group = 0
		}
	}
	return b // not reached: nothing goes on behind the shape
}

// idDigit returns the digit of the character at i, and whether it is one that a
// UUID may have there.
func idDigit(base int, id string, i int) (digit int, goesOn bool) {
	if i == len(id) {
		return 0, false // the end of the id, in every base
	}
	c := id[i]
	switch {
	case base == tailBase:
		return tailMore, false
	case base == dashBase && c == '-':
		return dash, true
	case base == dashBase && c < '-':
		return dashLow, false
	case base == dashBase:
		return dashHigh, false
	case c < '0':
		return hexLow, false
	case c <= '9':
		return hexZero + int(c-'0'), true
	case c < 'a':
		return hexMid, false
	case c <= 'f':
		return hexA + int(c-'a'), true
	}
	return hexHigh, false
}

// parseID is the inverse of appendID. A member that no id is stored as gives itself.
func parseID(member string) string {
	id := make([]byte, 0, len(uuidShape))
	rest, group := member, 0
	for i := range idPlaces {
		place := &idPlaces[i]
		if i == 0 || idPlaces[i-1].last {
			if len(rest) < 2 {
				return member
			}
			group, rest = int(rest[0])<<8|int(rest[1]), rest[2:]
		}
		digit := group / place.weight
		group %= place.weight
		c, goesOn := idChar(place.base, digit)
		if !goesOn {
			return string(append(id, rest...))
		}
		id = append(id, c)
	}
	return member
}

// idChar is the inverse of idDigit, where there is one.
func idChar(base, digit int) (c byte, goesOn bool) {
	switch {
	case base == dashBase && digit == dash:
		return '-', true
	case base == hexBase && digit >= hexZero && digit < hexMid:
		return '0' + byte(digit-hexZero), true
	case base == hexBase && digit >= hexA && digit < hexHigh:
		return 'a' + byte(digit-hexA), true
	}
	return 0, false
}
