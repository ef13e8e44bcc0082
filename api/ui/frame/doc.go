// Package frame is what all pages for people have in common: who looks at them and how they log in,
// the layout with its style and script, how forms are answered, and the words for times and states.
//
//	request ─▶ within: who is it? ─▶ page or action of a section ─▶ layout
//	               └ nobody: login with a token
//
// Sections bring the pages. The only state is how many wrong tokens came.
package frame
