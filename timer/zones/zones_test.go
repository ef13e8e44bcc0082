package zones

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestAZoneIsLoadedOnce(t *testing.T) {
	var all [8]*time.Location
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			zone, err := Load("Europe/Berlin")
			if err != nil {
				t.Error(err)
			}
			all[i] = zone
		})
	}
	wg.Wait()
	for _, zone := range all {
		if zone != all[0] || zone.String() != "Europe/Berlin" {
			t.Errorf("%p is %v, and the first one is %p", zone, zone, all[0])
		}
	}
	if _, err := Load("Europe/Nowhere"); err == nil {
		t.Error("there is a zone Europe/Nowhere")
	}
}

func TestAsManyZonesAreKeptAsTheDatabaseHas(t *testing.T) {
	full := table{known: make(map[string]*time.Location)}
	for i := range most {
		full.known[fmt.Sprint(i)] = time.UTC
	}
	one, err := full.load("Asia/Tokyo")
	if err != nil || one.String() != "Asia/Tokyo" || len(full.known) != most {
		t.Errorf("%v, %v, with %d kept", one, err, len(full.known))
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load("Europe/Berlin"); err != nil {
			b.Fatal(err)
		}
	}
}
