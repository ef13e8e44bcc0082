package faults

import "slices"

// Faults are all there are, in the order in which they are played but for those that are long.
func Faults() []Fault {
	return slices.Concat(
		nodeFaults(),
		workerFaults(),
		redisFaults(),
		replicaFaults(),
		netFaults(),
		diskFaults(),
		clockFaults(),
		machineFaults(),
		wireFaults(),
		lagFaults(),
		topicFaults(),
	)
}
