package server

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const enqueueMethod = ddqv1.DelayQueueService_Enqueue_FullMethodName

// rude is a connection of somebody who begins calls and does not finish them. It keeps to the windows
// that it is given, or the server would cut it off for that alone.
type rude struct {
	*testing.T
	*http2.Framer
	conn    net.Conn
	frames  chan any // http2.Frame values that matter, then nil
	next    uint32
	window  int64             // of the connection
	windows map[uint32]int64  // of calls
	left    map[uint32]int    // bytes of the messages of calls, after what says how many they are
	ended   map[uint32]string // grpc-status, by call
	sent    int
	closed  bool
}

type (
	moreWindow struct {
		call uint32
		n    int64
	}
	callEnd struct {
		call   uint32
		status string
	}
)

func newRude(r *rig) *rude {
	conn, err := r.lis.Dial()
	if err != nil {
		r.Fatal(err)
	}
	u := &rude{
		T: r.T, Framer: http2.NewFramer(conn, conn), conn: conn, frames: make(chan any, 1<<16), next: 1, window: 1<<16 - 1,
		windows: make(map[uint32]int64), left: make(map[uint32]int), ended: make(map[uint32]string),
	}
	u.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		r.Fatal(err)
	}
	if err := u.WriteSettings(); err != nil {
		r.Fatal(err)
	}
	go u.read()
	return u
}

// read answers what a client has to answer, and passes on the rest.
func (u *rude) read() {
	defer close(u.frames)
	for {
		frame, err := u.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.WindowUpdateFrame:
			u.frames <- moreWindow{f.StreamID, int64(f.Increment)}
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				if h.Name == "grpc-status" {
					u.frames <- callEnd{f.StreamID, h.Value}
				}
			}
		case *http2.SettingsFrame:
			u.frames <- f.IsAck()
		case *http2.PingFrame:
			if !f.IsAck() {
				u.frames <- f.Data
			}
		}
	}
}

// take takes what the server has said, and waits for something if it is to.
func (u *rude) take(wait bool) {
	for !u.closed {
		var said any
		var open bool
		if wait {
			said, open = <-u.frames
		} else {
			select {
			case said, open = <-u.frames:
			default:
				return
			}
		}
		wait = false
		switch s := said.(type) {
		case moreWindow:
			if s.call == 0 {
				u.window += s.n
			} else {
				u.windows[s.call] += s.n
			}
		case callEnd:
			u.ended[s.call] = s.status
			delete(u.left, s.call)
		case bool:
			if !s {
				u.write(u.WriteSettingsAck())
			}
		case [8]byte:
			u.write(u.WritePing(true, s))
		}
		u.closed = u.closed || !open
	}
}

func (u *rude) write(err error) { u.closed = u.closed || err != nil }

// begin begins a call whose message is to have this many bytes, of which these come.
func (u *rude) begin(method, token string, size, comes int) (call uint32) {
	var text bytes.Buffer
	enc := hpack.NewEncoder(&text)
	enc.SetMaxDynamicTableSize(0)
	fields := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	}
	if token != "" {
		fields = append(fields, [2]string{"authorization", "Bearer " + token})
	}
	for _, f := range fields {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			u.Fatal(err)
		}
	}
	call = u.next
	u.next += 2
	u.write(u.WriteHeaders(http2.HeadersFrameParam{StreamID: call, BlockFragment: text.Bytes(), EndHeaders: true}))
	u.windows[call] = 1<<16 - 1
	if comes < 0 {
		return call
	}
	var prefix [5]byte
	binary.BigEndian.PutUint32(prefix[1:], uint32(size))
	u.data(call, prefix[:])
	u.left[call] = comes
	return call
}

func (u *rude) data(call uint32, b []byte) {
	u.write(u.WriteData(call, false, b))
	u.sent += len(b)
	u.window -= int64(len(b))
	u.windows[call] -= int64(len(b))
}

var zeros [16 << 10]byte

// send sends all that may be sent, until it is all there, nobody wants it any more, or the server says nothing.
func (u *rude) send() {
	for len(u.left) > 0 && !u.closed {
		before := u.sent
		for call, left := range u.left {
			n := int(min(int64(left), int64(len(zeros)), u.window, u.windows[call]))
			if n > 0 {
				u.data(call, zeros[:n])
			}
			if u.left[call] = left - max(n, 0); u.left[call] == 0 {
				delete(u.left, call)
			}
		}
		u.take(u.sent == before)
	}
}

const unfinished = 6<<20 - 100

// TestStrangersAreRefusedBeforeTheirMessageComes: who has no token sends no more than the window that a call begins with.
func TestStrangersAreRefusedBeforeTheirMessageComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guardedWith(t, Config{}, func(r *guardedRig) {
			u := newRude(r.rig)
			defer u.conn.Close()
			const calls = 100
			for i := range calls {
				u.begin(enqueueMethod, []string{"", "none"}[i%2], unfinished, unfinished-1)
			}
			u.send()
			for until := time.Now().Add(time.Minute); len(u.ended) < calls && !u.closed && time.Now().Before(until); {
				u.take(true)
			}
			if len(u.ended) < calls {
				t.Errorf("%d calls ended", len(u.ended))
			}
			for call, status := range u.ended {
				if status != "16" {
					t.Errorf("call %d: status %s", call, status)
				}
			}
			if most := calls << 16; u.sent > most || u.closed {
				t.Errorf("they sent %d bytes, more than %d (closed: %v)", u.sent, most, u.closed)
			}
		})
	})
}
