// Package frame is what all pages for people have in common: who looks at them and how they log in,
// the document with its style and script, how forms are answered, the parts that pages are made of,
// and the words for times and states.
//
//	request ─▶ within: who is it? ─▶ page or action of a section ─▶ document
//	               └ nobody: login with a token
//
// A live page is made once a second for all who look at it with the same rights; what is new is sent as
// events, and the script puts it in place (stream, lives).
//
// Sections bring the pages. Texts and attributes are escaped when they are written, and links and forms
// lead to paths of Link only: whatever others wrote is text. The only state is how many wrong tokens came, and
// the pages that somebody looks at.
package frame
