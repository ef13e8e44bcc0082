package session

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// Confirm asks before something is destroyed, unless --yes was given. Where
// nobody can be asked, --yes is required.
func (c *Session) Confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !terminal.IsTerminal(c.In) {
		return Usagef("this would %s; add --yes to do it", what)
	}
	fmt.Fprintf(c.Err, "This will %s. Type yes to go on: ", terminal.Line(what))
	answer, _ := bufio.NewReader(c.In).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		fmt.Fprintln(c.Err, "Nothing was changed.")
		return ErrReported
	}
	return nil
}
