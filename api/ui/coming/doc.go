// Package coming shows what is to come: forecasts of the server as pictures of other pages, and a page that says
// of a span of time which topics and schedules it is of.
//
// A forecast may cost as much as some thousand enqueues. Forecasts keeps each for a while, and lets no page wait
// for one longer than it waits for other things.
package coming
