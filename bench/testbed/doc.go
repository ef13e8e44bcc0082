// Package testbed starts servers of ddq with a store of their own in a box, for what measures them:
// how they are started, killed and started again, and what their store weighs. It knows no workload.
package testbed
