package codec_test

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ddq-io/ddq/api/codec"
)

func Example_server() {
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
	defer server.Stop()
}

func Example_client() {
	conn, err := grpc.NewClient("127.0.0.1:9090",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.Proto)))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
}
