package codec

import "testing"

func TestPoolHandsOutWhatItHasRoomFor(t *testing.T) {
	p := new(bufferPool)
	for _, n := range []int{0, 1, 256, 257, 130_000, 1 << 20, 1<<20 + 1} {
		for range 2 { // a new one, and perhaps one that came back
			b := p.Get(n)
			if len(*b) != n {
				t.Errorf("asked for %d bytes, got %d", n, len(*b))
			}
			*b = (*b)[:n/2] // a prefix comes back
			p.Put(b)
		}
	}
	odd := make([]byte, 300)
	p.Put(&odd)
	if b := p.Get(512); cap(*b) != 512 {
		t.Errorf("a buffer of %d bytes is for 512", cap(*b))
	}
}
