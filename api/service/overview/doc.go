// Package overview says how topics and nodes fare. It asks every node once for what it has in memory,
// the store for what it keeps count of, and for no more tasks than a bound says: its cost does not rise with
// how many tasks there are. What it found is the answer to everybody for a second.
package overview
