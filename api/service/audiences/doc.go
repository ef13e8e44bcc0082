// Package audiences has the use cases of audiences and their recipients. Any node answers
// them: the shards of audiences have no owner, and every change is a commit that fails
// when somebody else was quicker, and is made again on what is there by then.
//
// What lies where, and what a change comes to, is package actors/audience's.
package audiences
