// Package calls checks the steps of workflows that wait for others in the middle, as the SDK's Call
// and Await have them: the function of such a step is handled in several tasks, one behind the other.
//
// Each task but the last is suspended by its ack, which adds what it waits for. The next one comes
// when all of that has ended, is told how, and has the journal of those before it.
package calls
