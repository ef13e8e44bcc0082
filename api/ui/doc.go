// Package ui serves pages for people: what is in the topics, what is due next, what became of a
// task, and what can be done about it. Pages are functions of what the API answers, and actions are
// calls of it; there is no store or rule here.
//
//	browser ─ key in a cookie ─▶ frame: who is it? ─▶ page or action of a section ─▶ channel of the server
//
// Pages are made on the server and can be read and used without a script. The one that there is keeps
// a page up to date while it is looked at, and leads to what is on it by keys. A form is a POST that
// answers with the page to see next.
package ui
