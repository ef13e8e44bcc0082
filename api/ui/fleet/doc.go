// Package fleet shows the nodes and what they own, and moves it.
package fleet
