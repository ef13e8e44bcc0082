package outbox

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// The tables, as migrations in the format of goose, for those who keep migrations of their
// own. Files are numbered from 1, and a file that was released is never changed.
//
//go:embed schema
var schemas embed.FS

// migrations are the steps that make the tables of a database, in order.
func migrations(database string) ([]string, error) {
	names, err := fs.Glob(schemas, "schema/"+database+"/*.sql") // in order
	if err != nil {
		return nil, err
	}
	steps := make([]string, len(names))
	for i, name := range names {
		file := name[strings.LastIndex(name, "/")+1:]
		if n, err := strconv.Atoi(file[:4]); err != nil || n != i+1 {
			return nil, fmt.Errorf("outbox: migration %s is not number %d", name, i+1)
		}
		text, err := schemas.ReadFile(name)
		if err != nil {
			return nil, err
		}
		steps[i], _, _ = strings.Cut(string(text), "-- +goose Down")
	}
	return steps, nil
}

// Schema returns what Install does to a database, "postgres" or "sqlite", from nothing: for a
// look, or for somebody else to do it.
func Schema(database string) (string, error) {
	steps, err := migrations(database)
	if err != nil {
		return "", err
	}
	begin, number := postgresVersion, postgresNumber
	switch database {
	case "postgres":
	case "sqlite":
		begin, number = sqliteVersion, sqliteNumber
	default:
		return "", fmt.Errorf("outbox: %q is no database: postgres or sqlite", database)
	}
	var all strings.Builder
	all.WriteString("begin;\n" + begin + ";\n\n")
	for i, step := range steps {
		fmt.Fprintf(&all, "%s\n%s;\n", step, strings.ReplaceAll(strings.ReplaceAll(number, "$1", strconv.Itoa(i+1)), "?", strconv.Itoa(i+1)))
	}
	all.WriteString("commit;\n")
	return all.String(), nil
}
