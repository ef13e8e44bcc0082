package box

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// Ready asks the HTTP address of a server whether it serves.
func Ready(ctx context.Context, httpAddr string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+httpAddr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", resp.Status)
	}
	return nil
}

// PlainEnv is the environment without settings of ddq, which would change what
// is measured.
func PlainEnv() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "DDQ_") {
			env = append(env, e)
		}
	}
	return env
}
