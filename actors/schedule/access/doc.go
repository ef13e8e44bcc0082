// Package access reads what the store has for schedules besides their cells. Any node may.
package access
