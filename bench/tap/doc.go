// Package tap writes down what clients and workers say and hear, as a ledger has it.
package tap
