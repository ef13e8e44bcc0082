// Package courier hands on the tasks that lie in the out-box of a shard which its node owns: each is
// made in its own shard, whose tally says up to which number it has taken them. So each is made
// once, however often it is sent. What is refused for good is kept where the ack was.
//
//	shard ─ Start ─▶ Courier.Round ─ Outcome ─▶ shard
//
// A round runs off the shard's actor, and knows no actor, message or timer. When there is to be one,
// and who is told what it made, is the shard's to say.
package courier
