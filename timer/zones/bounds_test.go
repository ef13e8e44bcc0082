package zones

import (
	"testing"
	"time"
)

// TestBoundsGoOn goes from span to span, to where the database has only a rule for a zone, or nothing.
func TestBoundsGoOn(t *testing.T) {
	changes := make(map[string]int)
	for _, name := range []string{"UTC", "Europe/Berlin", "Europe/Dublin", "America/Santiago", "Asia/Gaza", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"} {
		zone, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC).In(zone)
		for at.UTC().Year() < 2101 {
			from, to := Bounds(at)
			if from.After(at) || !to.IsZero() && !to.After(at) {
				t.Fatalf("%s: %v lies between %v and %v", name, at, from, to)
			}
			if to.IsZero() {
				break
			}
			_, was := at.Zone()
			_, last := to.Add(-1).Zone()
			if _, is := to.Zone(); is != was {
				changes[name]++
			}
			if last != was {
				t.Fatalf("%s: from %v to %v the offset is %d and %d", name, at, to, was, last)
			}
			at = to
		}
	}
	for name, want := range map[string]int{"UTC": 0, "Europe/Berlin": 130, "America/Santiago": 130, "Pacific/Apia": 0} {
		if changes[name] != want {
			t.Errorf("%s has %d changes in 65 years, want %d", name, changes[name], want)
		}
	}
}

// TestBoundsInLeapYears asks at the end of years that a zone's database has a rule for.
func TestBoundsInLeapYears(t *testing.T) {
	berlin, err := Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, year := range []int{2040, 2041, 2044, 2100} {
		next := time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, before := range []time.Duration{1, time.Hour, 24*time.Hour - 1} {
			if _, to := Bounds(next.Add(-before).In(berlin)); !to.Equal(next) || to.Location() != berlin {
				t.Errorf("%v before %v: the bound is %v", before, next, to)
			}
		}
	}
}
