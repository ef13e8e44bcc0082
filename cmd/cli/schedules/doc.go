// Package schedules has the commands for what comes again: schedules, the calendars that
// they leave out, and the audiences that they go to.
package schedules
