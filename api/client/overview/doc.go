// Package overview has what operators ask of a server about how topics fare, and about who takes their
// tasks. Its calls are methods of a client.Client.
package overview
