package timetable

import (
	"testing"
	"time"
)

func BenchmarkZoneRules(b *testing.B) {
	b.ReportAllocs()
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		if ZoneRules(at) == 0 {
			b.Fatal("nothing is known of any zone")
		}
	}
}
