package forecast

import (
	"github.com/ddq-io/ddq/store"
)

// Stratum is a span of time in which cells wake, and how many of them are read.
type Stratum struct {
	From, To store.Millis // To is not part of it
	Cells    int64
	Read     int
}

// Weight is how many cells each of so many that were read stands for.
func (s *Stratum) Weight(read int) float64 {
	if read == 0 {
		return 0
	}
	return float64(s.Cells) / float64(read)
}

// Strata divides the cells that wake within bounds into spans with about as many each, and
// has about the same number read of each. Cells that wake together have more in common than
// others: so a few of each say more than as many of the first ones. Counts are those of a
// histogram of wakes: those before the first bound are in the first span.
func Strata(bounds []store.Millis, counts []int64, spans, read int) (all []Stratum) {
	total := int64(0)
	for _, n := range counts[:len(bounds)] {
		total += n
	}
	if total == 0 {
		return nil
	}
	each := (total + int64(spans) - 1) / int64(spans)
	s := Stratum{}
	for i, bound := range bounds {
		s.Cells += counts[i]
		if s.To = bound; s.Cells >= each {
			all, s = append(all, s), Stratum{From: bound}
		}
	}
	if s.Cells > 0 {
		all = append(all, s)
	}
	for i := range all {
		share := (all[i].Cells*int64(read) + total - 1) / total
		all[i].Read = int(min(share, all[i].Cells))
	}
	return all
}
