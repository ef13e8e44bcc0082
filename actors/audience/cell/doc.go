// Package cell is the stored form of what package audience keeps in cells.
package cell
