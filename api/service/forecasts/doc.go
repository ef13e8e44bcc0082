// Package forecasts has the use cases of what is to come: the forecast of a day, the warning
// of a schedule that meets too many others, and the dry run. They read, and change nothing.
//
//	forecast     columns of tasks, schedules and walks
//	expand       what is read of the cells of a shard for them: all, or a sample
//	collision    the second in which too much is due
//	dryrun       the runs that would be made
//	forecasts    what they share
//
// What they make of it is package actors/forecast's.
package forecasts
