// Package audits reads what the nodes have written down of their administrators. A client.Client has
// its calls.
package audits
