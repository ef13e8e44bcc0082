// Command release says what a built ddq is made of: the licences of its modules, its bill of
// materials, and a statement of how it was built. It reads the binary, which knows its modules
// and their sums, and the module cache; it asks nobody. release.sh, one folder up, makes a
// release with it.
package main
