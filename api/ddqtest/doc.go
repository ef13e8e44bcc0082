// Package ddqtest plays workflows in tests, with the handlers that a program gives its workers: on a
// server in the test's own process, which keeps everything in memory, and in fake time. A wait of a
// day is over in a moment.
//
// What is played is ddq: the server, the client and the worker are those of production, only the
// store, the network and the clock are not. All of it runs in a bubble of testing/synctest, and so do
// the handlers: they must not wait for what is outside, such as a database or the network, or time
// stands still.
//
// The package needs the server, and what that needs: import it in tests only.
package ddqtest
