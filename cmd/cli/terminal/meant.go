package terminal

import "strings"

// Meant returns the one of known that a mistyped name was probably meant to be, or "".
func Meant(name string, known []string) string {
	flat := strings.NewReplacer("-", "", "_", "")
	name = flat.Replace(strings.ToLower(name))
	best, found := mostTypos(name)+1, ""
	for _, k := range known {
		if d := typos(name, flat.Replace(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

// mostTypos is how many typos a name may have and still be taken for another:
// short words are near to many others.
func mostTypos(name string) int {
	if len(name) < 6 {
		return 1
	}
	return 2
}

// typos counts the letters that are missing, added, wrong or swapped with the next
// one, between a and b.
func typos(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
