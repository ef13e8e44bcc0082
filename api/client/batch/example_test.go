package batch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/batch"
)

func ExampleBatcher() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	b := batch.New(c, batch.Config{MaxTasks: 256})
	defer b.Close() // before the client: waits for every outcome

	for n := range 100_000 {
		task := client.Task{Topic: "mail", Payload: fmt.Appendf(nil, "mail %d", n)}
		err := b.Add(context.Background(), task, func(r client.Receipt, err error) {
			if err != nil {
				log.Print(r.ID, err)
			}
		})
		if err != nil {
			log.Fatal(err)
		}
	}
}
