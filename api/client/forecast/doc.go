// Package forecast has what a forecast warns of. client.DueWarning is its Warning.
package forecast
