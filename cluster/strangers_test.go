package cluster_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ddq-io/ddq/cluster"
)

// tapped is a transport that somebody listens to.
type tapped struct {
	memberlist.Transport
	mu     sync.Mutex
	frames [][]byte // sent; guarded by mu
}

func (t *tapped) WriteTo(b []byte, addr string) (time.Time, error) {
	t.mu.Lock()
	t.frames = append(t.frames, bytes.Clone(b))
	t.mu.Unlock()
	return t.Transport.WriteTo(b, addr)
}

func (t *tapped) heard() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.frames)
}

// TestStrangersAreNoMembers: whoever does not have the key of the fleet cannot join it. Frames that it
// recorded, changed or made up bring no node back that has left.
func TestStrangersAreNoMembers(t *testing.T) {
	const key, other = "MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="
	bubble(t, func(f *fleet) {
		with := func(keys ...string) func(*cluster.Config) { return func(c *cluster.Config) { c.Keys = keys } }
		var tap *tapped
		f.start("a", with(key))
		b := f.start("b", with(key), func(c *cluster.Config) {
			tap = &tapped{Transport: c.Transport}
			c.Transport = tap
		})
		f.see(f.nodes[0], 10*time.Second, "a:a", "b:a")
		without, wrong := f.start("c"), f.start("d", with(other))
		time.Sleep(30 * time.Second)
		f.see(f.nodes[0], 0, "a:a", "b:a")
		f.see(without, 0, "c:a")
		f.see(wrong, 0, "d:a")

		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.see(f.nodes[0], 10*time.Second, "a:a")
		frames := tap.heard()
		if len(frames) < 10 {
			t.Fatalf("heard %d frames", len(frames))
		}
		for _, frame := range frames {
			if bytes.Contains(frame, []byte("b:9090")) {
				t.Error("a frame is not encrypted")
			}
		}
		_, stranger := f.net.Join()
		for _, frame := range frames {
			noise := make([]byte, len(frame))
			_, _ = rand.Read(noise)
			changed := bytes.Clone(frame)
			changed[len(changed)/2] ^= 1
			for _, b := range [][]byte{frame, noise, changed, frame[:len(frame)/2]} {
				if _, err := stranger.WriteTo(b, f.nodes[0].addr); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
			f.see(f.nodes[0], 0, "a:a")
		}
		conn, err := stranger.DialTimeout(f.nodes[0].addr, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(bytes.Repeat([]byte{1, 0xff}, 4096)) // it may hang up before
		_ = conn.Close()
		time.Sleep(10 * time.Second)
		f.see(f.nodes[0], 0, "a:a")
	})
}

const gossipKey = "MDEyMzQ1Njc4OWFiY2RlZg=="

func keyed(c *cluster.Config) { c.Keys = []string{gossipKey} }

// TestStrangersOccupyLittleMemory: what a node reads of a frame before it has checked its key is a small
// part of what the frame may claim to have.
func TestStrangersOccupyLittleMemory(t *testing.T) {
	const conns, claim, most = 20, 20 << 20, 1 << 20
	bubble(t, func(f *fleet) {
		a := f.start("a", keyed)
		frame := binary.BigEndian.AppendUint32([]byte{encrypted}, claim)
		noise := make([]byte, 64<<10)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var sent atomic.Int64
		var group sync.WaitGroup
		for range conns {
			_, stranger := f.net.Join()
			group.Go(func() {
				conn, err := stranger.DialTimeout(a.addr, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				n, err := conn.Write(frame)
				for err == nil {
					sent.Add(int64(n))
					n, err = conn.Write(noise)
				}
			})
		}
		group.Wait()
		runtime.ReadMemStats(&after)
		if got := sent.Load(); got > conns*(most+int64(len(noise))) {
			t.Errorf("%d MiB of %d were read of %d strangers", got>>20, conns*claim>>20, conns)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > conns*claim/2 { // five times as much before; the race detector has buffers of its own
			t.Errorf("%d MiB were allocated for claims of %d", got>>20, conns*claim>>20)
		}
		f.start("b", keyed)
		f.see(a, 10*time.Second, "a:a", "b:a")
	})
}

// encrypted is the first byte of a frame under a key.
const encrypted = 10

// TestStrangersHoldFewConnections: one address holds a few at a time, all together some more, and members
// find each other once they go.
func TestStrangersHoldFewConnections(t *testing.T) {
	const ofOne, ofAll = 4, 16
	bubble(t, func(f *fleet) {
		a := f.start("a", keyed)
		hold := func(strangers, each int) (held int) {
			var open sync.WaitGroup
			var n atomic.Int64
			for range strangers {
				_, stranger := f.net.Join()
				for range each {
					open.Go(func() {
						conn, err := stranger.DialTimeout(a.addr, 10*time.Millisecond)
						if err != nil {
							return
						}
						defer conn.Close()
						_ = conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
						if _, err := conn.Write([]byte{encrypted}); err != nil {
							return
						}
						_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
						_, err = conn.Read(make([]byte, 1))
						if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
							n.Add(1) // it is read from, and waits for the rest
						}
					})
				}
			}
			open.Wait()
			return int(n.Load())
		}
		if n := hold(1, 60); n != ofOne {
			t.Errorf("one address held %d connections, want %d", n, ofOne)
		}
		if n := hold(10, 10); n != ofAll {
			t.Errorf("ten addresses held %d connections, want %d", n, ofAll)
		}
		f.start("b", keyed)
		f.see(a, 10*time.Second, "a:a", "b:a")
	})
}
