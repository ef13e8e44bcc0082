// Package browser holds the tests of the pages in a browser: their layout, what a keyboard can do,
// and that they do nothing but what they should. It is a module of its own, since users of ddq need
// no browser. tools/deps.sh tests installs one.
package browser
