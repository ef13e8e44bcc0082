// Package topics shows topics: all of them, with what is due next, and one with its policy and what can be done to it.
package topics
