package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
)

func TestKeysAreBase64OrHexadecimal(t *testing.T) {
	for _, size := range []int{16, 24, 32} {
		want := bytes.Repeat([]byte{0xfe}, size)
		for _, text := range []string{base64.StdEncoding.EncodeToString(want), hex.EncodeToString(want)} {
			keys, err := decodeKeys([]string{text})
			if err != nil || len(keys) != 1 || !bytes.Equal(keys[0], want) {
				t.Errorf("%s: got %x, %v", text, keys, err)
			}
		}
	}
}

func TestKeysAreExchanged(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 16) }
	ring, err := memberlist.NewKeyring([][]byte{key('b'), key('c')}, key('a'))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"abc", "ac", "cad", "d", "dabc", "ba", "ba"} {
		var keys [][]byte
		for _, b := range []byte(want) {
			keys = append(keys, key(b))
		}
		before := ring.GetKeys()
		kept := bytes.Join(before, nil)
		if err := exchangeKeys(ring, keys); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.Join(before, nil), kept) {
			t.Errorf("%s: keys changed under a reader", want)
		}
		got := ring.GetKeys()
		if len(got) != len(want) || got[0][0] != want[0] {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, k := range got {
			if !strings.Contains(want, string(k[:1])) {
				t.Errorf("key %s is left of %s", k, want)
			}
		}
	}
}

func TestErrorsOfTheLibraryAreWarningsOnce(t *testing.T) {
	var out bytes.Buffer
	l := newLibraryLog(slog.New(slog.NewTextHandler(&out, nil)))
	l.Print("[DEBUG] memberlist: Stream connection from=x")
	for range 3 {
		l.Print("[ERR] memberlist: Decrypt packet failed: no key from=x")
	}
	l.Print("[ERR] memberlist: Failed to encode ack: y")
	if got := strings.Count(out.String(), "level=WARN"); got != 2 || strings.Contains(out.String(), "Stream") {
		t.Errorf("%d warnings, want 2:\n%s", got, out.String())
	}
}
