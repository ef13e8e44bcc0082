// Package access reads what the store has for schedules besides their cells, and deletes dead letters of
// their runs. Any node may.
package access
