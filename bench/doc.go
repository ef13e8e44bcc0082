// Package bench measures a delay queue from outside, through its public client.
//
// A workload is played by three parties, each a process of its own so that
// their CPU and memory can be told apart:
//
//	harness (this process)            worker process            the system
//	  producers  ── tasks ───────────────────────────────────▶ server, store
//	  host       ── expect, work ──▶  Session ◀── deliveries ──
//	             ◀── done, report ──  Recorder
//
// Nouns, a file each: an Instance is a running system, a Driver speaks to it, a
// load is what the producers send, a Recorder notes what the worker sees, a
// Tally (of package ledger) holds promises against deliveries, a Line (of package result) is what comes out. A
// scenario file (throughput, lateness, herd, in-flight, backlog, restart) puts them
// together. The same scenarios run against every System, which is what makes
// the figures of bench/peers comparable.
//
// Lateness is the worker's clock at the start of the handler minus the due
// time; harness, worker and store share one machine and so one clock, unless
// --addr names a server elsewhere. CPU and memory are read from /proc over the
// measured window only, so on other systems than Linux those fields are zero.
//
// Everything the harness starts lives in a Box and is stopped and removed with
// it, also after an interrupt or a failure.
package bench
