package result

import "testing"

func TestLineInPartsOfAPlainOne(t *testing.T) {
	plain := Line{EndToEndPerS: 200, CPU: Roles{Client: 1, Server: 2}}
	l := Line{EndToEndPerS: 50, CPU: Roles{Client: 1.5, Server: 8, Store: 3}}
	got := l.Against(&plain)
	if got.RateOfPlain != 0.25 || got.CPUOfPlain != (Roles{Client: 1.5, Server: 4}) {
		t.Errorf("%v of the rate, %+v of the processor", got.RateOfPlain, got.CPUOfPlain)
	}
	if same := plain.Against(&plain); same.RateOfPlain != 1 {
		t.Errorf("%v of its own rate", same.RateOfPlain)
	}
}
