package cli

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
	if !isTerminal(c.In) {
		return usagef("this would %s; add --yes to do it", what)
	}
	fmt.Fprintf(c.Err, "This will %s. Type yes to go on: ", what)
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		fmt.Fprintln(c.Err, "Nothing was changed.")
		return errReported
	}
	return nil
}
