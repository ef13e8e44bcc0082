// Package limit is the arithmetic of rates and caps: when the next token of a bucket
// or a sliding window comes, and who has a permit. It has no clock and no I/O. The
// stores that keep limits in this process's memory are made of it; those of Redis
// are scripts that compute the same.
package limit
