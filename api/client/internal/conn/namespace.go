package conn

import (
	"context"

	"google.golang.org/grpc"
)

// InNamespace has each call of a connection name its namespace.
func InNamespace(name string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(inNamespace(name))
}

// inNamespace is sent as credentials are: with whatever is called.
type inNamespace string

func (n inNamespace) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"ddq-namespace": string(n)}, nil
}

func (n inNamespace) RequireTransportSecurity() bool { return false }
