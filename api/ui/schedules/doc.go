// Package schedules shows schedules: all of them, and one with its next runs and what became of those before.
package schedules
