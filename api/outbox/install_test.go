//go:build linux

package outbox_test

import (
	"sync"
	"testing"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/pgtest"
)

func TestInstallMayBeCalledByAllAtOnceAndAgain(t *testing.T) {
	for name, open := range map[string]func(testing.TB) base{"postgres": postgresBase, "sqlite": sqliteBase} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if err := outbox.Install(t.Context(), b); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if _, err := b.transact(t.Context(), nil, client.Task{Topic: "t"}); err != nil {
				t.Fatal(err)
			}
			if err := outbox.Install(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if s, err := outbox.Inspect(t.Context(), b); err != nil || s.Version != 1 || s.Rows != 1 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func TestTheSchemaIsWhatInstallMakes(t *testing.T) {
	pool := pgtest.Pool(t, postgres.Database(t))
	sqlite := openSQLite(t, "file:"+t.TempDir()+"/base")
	for name, b := range map[string]struct {
		outbox.Database
		exec func(string) error
	}{
		"postgres": {outbox.Postgres(pool), func(sql string) error { _, err := pool.Exec(t.Context(), sql); return err }},
		"sqlite":   {outbox.SQLite(sqlite), func(sql string) error { _, err := sqlite.Exec(sql); return err }},
	} {
		schema, err := outbox.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.exec(schema); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, schema)
		}
		if err := outbox.Install(t.Context(), b); err != nil {
			t.Error(err)
		}
		if s, err := outbox.Inspect(t.Context(), b); err != nil || s.Version != 1 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if _, err := outbox.Schema("mysql"); err == nil {
		t.Error("there is a schema for mysql")
	}
}
