package audience

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPlacesAgreeWithTheOrderOfTheWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Spread{
			Window: time.Duration(rapid.Int64Range(0, int64(MaxWindow/time.Millisecond)).Draw(t, "window")) * time.Millisecond,
			Grain:  time.Duration(rapid.Int64Range(0, int64(time.Hour/time.Millisecond)).Draw(t, "grain")) * time.Millisecond,
			Turn:   Position(rapid.Uint64().Draw(t, "turn")),
		}
		a, b := Position(rapid.Uint64().Draw(t, "a")), Position(rapid.Uint64().Draw(t, "b"))
		if s.turned(a) < s.turned(b) && s.Place(a) > s.Place(b) {
			t.Fatalf("%v comes before %v, and its place is behind: %v, %v", a, b, s.Place(a), s.Place(b))
		}
		place := s.Place(a)
		if place < 0 || place > 0 && place >= s.Window || place%s.grain() != 0 {
			t.Fatalf("place %v", place)
		}
		end, bounded := s.until(place)
		if bounded && s.placeOf(end-1) > place || bounded && s.placeOf(end) <= place {
			t.Fatalf("places up to %v end before %x: %v, %v", place, end, s.placeOf(end-1), s.placeOf(end))
		}
		if !bounded && s.placeOf(^Position(0)) > place {
			t.Fatalf("places up to %v are not all: the last is %v", place, s.placeOf(^Position(0)))
		}
	})
}

func TestPlacesAreEvenlyTaken(t *testing.T) {
	s := Spread{Window: 10 * time.Second, Grain: time.Second}
	var at [10]int
	for i := range 100_000 {
		_, p := Locate(fmt.Sprint("user-", i), 64)
		at[s.Place(p)/time.Second]++
	}
	for second, n := range at {
		if n < 9_600 || n > 10_400 { // four standard deviations
			t.Errorf("%d of 100000 recipients in second %d", n, second)
		}
	}
}

func TestTreesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTree()
		for range rapid.IntRange(0, 60).Draw(t, "splits") {
			if i := rapid.IntRange(0, len(x)-1).Draw(t, "leaf"); x[i].bits < deepest {
				x.split(i)
			}
		}
		got, err := decodeTree(x.encode())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(x) {
			t.Fatalf("%v became %v, %v", x, got, err)
		}
		p := Position(rapid.Uint64().Draw(t, "position"))
		if leaf := x[x.at(p)]; !leaf.has(p) {
			t.Fatalf("%x is in %v", p, leaf)
		}
	})
}

func TestLeavesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Leaf{}
		for range rapid.IntRange(0, 20).Draw(t, "entries") {
			e := Entry{Recipient: drawRecipient(t), From: rapid.Int64Range(0, 3).Draw(t, "from"), Generation: rapid.Int64Range(0, 2).Draw(t, "generation")}
			_, e.At = Locate(e.ID, 4)
			e.Zone = "Asia/Tokyo"
			l.Entries = append(l.Entries, e)
		}
		cell := prefix{}.cell("Asia/Tokyo", l.body())
		got, err := DecodeLeaf(cell, 4)
		if err != nil || fmt.Sprint(got.Entries) != fmt.Sprint(l.Entries) {
			t.Fatalf("%v became %v, %v", l, got, err)
		}
	})
}

func TestSmallRecipientsTakeLittle(t *testing.T) {
	l := &Leaf{}
	for i := range 128 {
		l.Entries = append(l.Entries, Entry{Recipient: Recipient{ID: fmt.Sprintf("user-%011d", i)}})
	}
	if n := len(l.body()) / 128; n > 20 {
		t.Errorf("%d bytes a recipient with an id of 16", n)
	}
}

func FuzzDecodeLeaf(f *testing.F) {
	f.Add((&Leaf{Entries: []Entry{{Recipient: Recipient{ID: "a"}}, {Recipient: Recipient{ID: "bc", Data: []byte("d")}}}}).body())
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := DecodeLeaf(prefix{}.cell("UTC", body), 1)
		if err != nil {
			return
		}
		again, err := DecodeLeaf(prefix{}.cell("UTC", l.body()), 1)
		if err != nil || fmt.Sprint(again.Entries) != fmt.Sprint(l.Entries) {
			t.Fatalf("%v became %v, %v", l.Entries, again, err)
		}
	})
}
