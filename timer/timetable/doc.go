// Package timetable says when something that comes again is to happen.
//
// A timetable is the union of entries: cron expressions, intervals and single
// instants. An instant that a timetable names is an occurrence; one that two
// entries name is one occurrence. Everything here is pure: the same timetable
// gives the same occurrences on every node, and in every preview.
//
// # Cron
//
// An expression is checked field by field, and what is left for the library is
// numbers, L, W and #; see syntax.go. One of another dialect is refused with what
// to write in its place, even where it parses; see dialect.go. Where a day field
// begins with *, a day must be in both day fields, as in Debian's cron.
//
// # Wall time
//
// A cron expression speaks of wall time, the date and time of day that people in
// a zone read off a clock. The parser counts in wall time as if there were no
// zones; wall.go says which instant a wall time is:
//
//	                        time of day is fixed      hour, minute or second begins with *
//	                        (30 2 * * *, @daily, H)   (*/30 2 * * *, @hourly)
//	counts                  each wall time of a       every instant whose
//	                        local day once            wall time matches
//	a gap (spring)          the first instant after   none: the wall times
//	                        it; several are one       in it do not exist
//	a fold (autumn)         the first of the two      both
//	a gap of over 12 hours  none: that day does       none
//	                        not exist
//
// So "daily at 02:30" is on every day, and "every minute" has neither an hour of
// silence nor one of repeats. Intervals count elapsed time and know no zones.
package timetable
