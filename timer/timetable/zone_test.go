package timetable

import "testing"

func TestZonesAreThoseOfTheDatabase(t *testing.T) {
	for _, name := range []string{"", "UTC", "Europe/Berlin", "Etc/GMT+5", "EST5EDT"} {
		if err := CheckZone(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"Local", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "right/UTC", "posix", "right", "posixrules/x",
		" UTC", "+02:00", "Berlin", "../UTC", "/UTC", "Europe", "zone.tab", "Europe/Berlin\x00",
	} {
		if err := CheckZone(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
}
