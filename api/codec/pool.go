package codec

import (
	"math/bits"
	"sync"
)

// Sizes of pooled buffers are powers of two: 2^leastBits bytes and so on.
const (
	leastBits = 8  // 256 B
	mostBits  = 20 // 1 MiB
)

// bufferPool keeps buffers for whoever writes all of what it gets. gRPC's own pools clear
// a buffer before they hand it out, to its full capacity, which for frames of tasks costs
// as much as copying them; and the default one has no size between 32 KiB and 1 MiB.
type bufferPool struct {
	sizes [mostBits - leastBits + 1]sync.Pool // of *[]byte
}

// Get returns a buffer of this length, with anything in it.
func (p *bufferPool) Get(length int) *[]byte {
	i := max(bits.Len(uint(max(length, 1)-1)), leastBits) - leastBits
	if i >= len(p.sizes) {
		b := make([]byte, length)
		return &b
	}
	if b, ok := p.sizes[i].Get().(*[]byte); ok {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, 1<<(i+leastBits))
	return &b
}

// Put takes back what Get returned.
func (p *bufferPool) Put(b *[]byte) {
	i := bits.Len(uint(cap(*b))) - 1 - leastBits
	if i < 0 || i >= len(p.sizes) || cap(*b) != 1<<(i+leastBits) {
		return // larger than what is kept
	}
	p.sizes[i].Put(b)
}
