// Package changes shows what happens to the tasks of a topic, as it happens.
//
//	page ─ asks for ─▶ feed ─ WatchTasks ─▶ server
//
// A feed has the last changes that a filter matches. All who look with the same rights share it, and it
// ends when nobody has looked for a while.
package changes
