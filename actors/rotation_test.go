package actors

import "testing"

// counted is how often each of n is taken in so many rounds.
func counted(n, rounds int) (times []int) {
	times = make([]int, n)
	var r rotation
	for range rounds {
		for _, i := range r.take(n) {
			times[i]++
		}
	}
	return times
}

func TestFewShardsThatDozeAreWatchedOnceInTenRounds(t *testing.T) {
	for n := 1; n <= dozersWatched*mostDozersWatched; n++ {
		for i, times := range counted(n, 10*dozersWatched) {
			if times != 10 {
				t.Errorf("of %d, number %d was watched %d times in 100 rounds, want 10", n, i, times)
			}
		}
	}
}

func TestManyShardsThatDozeAreWatchedTwoARound(t *testing.T) {
	for i, times := range counted(100, 100) {
		if times != mostDozersWatched {
			t.Errorf("of 100, number %d was watched %d times in 100 rounds, want %d", i, times, mostDozersWatched)
		}
	}
}
