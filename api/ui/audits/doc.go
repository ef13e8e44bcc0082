// Package audits shows what administrators did at all nodes, and whether it is as it was written.
package audits
