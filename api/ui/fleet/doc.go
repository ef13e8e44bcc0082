// Package fleet shows the nodes and what they own, and moves it, and the workers of all.
package fleet
