// Package plan decides what each task of a round of faults goes through: when it is sent and
// due, what its handler does, how it is edited, cancelled and waited for, and which topics and
// keys it has. All of it follows from the seed and the id, so that a worker process knows what a
// producer process meant without being told, and the same seed makes the same round.
//
// It starts nothing and calls nobody. Party plays it.
package plan
