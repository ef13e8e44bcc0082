package node

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// BenchmarkSubmitWorkflows submits a hundred workflows of two steps in one request, of which the first
// waits for a signal. The time is that of a request.
func BenchmarkSubmitWorkflows(b *testing.B) {
	for _, name := range []string{Embedded, "redis"} {
		b.Run(name, func(b *testing.B) {
			cfg := &Config{Store: name, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, ShutdownGrace: 10 * time.Second, Data: filepath.Join(b.TempDir(), "data")}
			if name == "redis" {
				cfg.Store = redistest.Start(b).URL()
			}
			n := started(b, cfg)
			defer stop(b, n)
			conn, err := grpc.NewClient(n.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			calls := ddqv1.NewWorkflowServiceClient(conn)
			for i := 0; b.Loop(); i++ {
				r := &ddqv1.SubmitWorkflowsRequest{}
				for k := range 100 {
					r.Workflows = append(r.Workflows, &ddqv1.Workflow{Topic: "orders", Id: fmt.Sprint(i, "-", k), Steps: []*ddqv1.Step{
						{Name: "go", Does: &ddqv1.Step_Wait{Wait: &ddqv1.Wait{What: &ddqv1.Wait_Signal{Signal: "go"}}}},
						{Name: "end", After: []*ddqv1.After{{Step: "go"}}, Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{}}},
					}})
				}
				reply, err := calls.SubmitWorkflows(b.Context(), r)
				if err != nil || reply.GetResults()[99].GetSubmitted() == nil {
					b.Fatal(reply, err)
				}
			}
		})
	}
}
