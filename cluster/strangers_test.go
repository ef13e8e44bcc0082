package cluster_test

import (
	"bytes"
	"crypto/rand"
	"slices"
	"sync"
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
