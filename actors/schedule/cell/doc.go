// Package cell has the stored form of a schedule: what lies in the body of its cell.
package cell
