// Package forecast says what is to come: how many tasks are due when, which occurrence of a
// schedule meets too many others, and which runs would be made. It is pure: it is given what
// lies in the store, and knows no store and no clock.
//
//	Forecast    columns of tasks by due time: those that are pending, and those to be made
//	Expansion   what one schedule adds to them; Left, what the walk of a run does
//	Strata      which cells to read where there are too many, and how much each stands for
//	Collision   the second in which too much is due, and where there is room
//	Rehearsal   the runs that a schedule makes, by the steps that make them
//
// A forecast is of what is known now: that runs end at once, that no task fails, and that
// nobody edits anything.
package forecast
