package client_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// Mail is the payload of a topic.
type Mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
}

// Producers and workers share the topic; see worker.HandlerOf.
var mail = client.TopicOf[Mail]("mail")

func ExampleTopicOf() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	receipt, err := mail.Enqueue(context.Background(), c, Mail{To: "ann@example.com", Subject: "Welcome"}, client.In(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt)
}

// Task makes tasks for everything else that takes them.
func ExampleTypedTopic_Task() {
	task, err := mail.Task(Mail{To: "ann@example.com", Subject: "Welcome"}, client.In(time.Hour), client.WithID("welcome-ann"))
	fmt.Printf("%s %s in %v: %s, %v\n", task.Topic, task.ID, task.Delay, task.Payload, err)
	// Output: mail welcome-ann in 1h0m0s: {"to":"ann@example.com","subject":"Welcome"}, <nil>
}
