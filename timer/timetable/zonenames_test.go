package timetable

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNearestZones(t *testing.T) {
	for name, want := range map[string]string{
		"Berlin": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "Europe/Berln": "Europe/Berlin", "Europe/New_York": "America/New_York",
		"New York": "America/New_York", "Asia/Calcuta": "Asia/Calcutta", "utc": "UTC",
	} {
		if got := NearestZones(name); !slices.Contains(got, want) {
			t.Errorf("%q: %v, and %s was meant", name, got, want)
		}
	}
	for _, name := range []string{"", "Local", "+02:00", "Middle/Earth", strings.Repeat("x", 1000)} {
		if got := NearestZones(name); len(got) > 0 {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestZonesCanBeLoaded(t *testing.T) {
	for name := range strings.Lines(zoneNames) {
		if _, err := time.LoadLocation(strings.TrimSuffix(name, "\n")); err != nil {
			t.Error(err)
		}
	}
}
