// Package schedules has the use cases of schedules and of the calendars that they leave
// out. What they need of topics, tasks and audiences comes in by Topics, Tasks and Audiences.
//
// The files are in layers, and none needs one that is above it:
//
//	calendars                                              calendars, which schedules name
//	put, pause, delete, trigger, backfill, preview, list   the use cases: a file for each
//	step                                                   one step of a schedule, committed
//	schedules, calendar, users │ quota │ spread            what is read for them
//	definition, check, audience │ status, problems         what is asked for and answered
//
// What a step is, and what it comes to in the store, is package actors/schedule's.
package schedules
