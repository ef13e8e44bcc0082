package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something is destroyed, unless --yes was given. Where
// nobody can be asked, --yes is required.
func (c *cli) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !isTerminal(c.in) {
		return usagef("this would %s; add --yes to do it", what)
	}
	fmt.Fprintf(c.err, "This will %s. Type yes to go on: ", what)
	answer, _ := bufio.NewReader(c.in).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		fmt.Fprintln(c.err, "Nothing was changed.")
		return errReported
	}
	return nil
}
